# SPDX-License-Identifier: Apache-2.0
"""Phrases that the style forbids, in pages, comments and code; and long sentences of pages and comments.

python3 tests/words.py [--list]      --list prints where each phrase stands, and every long sentence

tests/words.txt has a phrase a line with how often it may still stand: the numbers may only fall. A
phrase is matched as whole words, whatever its case. In the length of a sentence code counts as one
word.
"""

import os
import re
import subprocess
import sys

LONGEST = 35
SUFFIXES = (".md", ".hpp", ".cpp", ".cmake", ".py", "CMakeLists.txt")
# Pages that quote the phrases, or are made of files elsewhere.
EXCEPT = {"tests/words.py", "tests/words.txt", "CHANGELOG.md"}
# Scripts whose text other files depend on: their sentences are not measured.
GENERATORS = "tests/reference/"


def sentences(text):
    """The sentences of a page: paragraphs and items, without code, tables and headings."""
    text = re.sub(r"<!--.*?-->", "\n\n", re.sub(r"```.*?```", "\n\n", text, flags=re.S), flags=re.S)
    text = re.sub(r"^(\||#).*$", "\n", text, flags=re.M)
    text = re.sub(r"``.*?``|`[^`\n]*(?:\n[^`\n]*)?`", "code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", text):
        for sentence in re.split(r"(?<=[.?!])[\s*]+", paragraph):
            yield " ".join(sentence.split())


def comment_sentences(text):
    """The sentences of comments that have lines of their own, and of Python's docstrings, without
    lines that are indented: tables and code."""
    blocks = re.findall(r"(?:^[ \t]*(?://|# )[^\n]*\n)+", text, flags=re.M)
    for block in blocks + [inner + "\n" for inner in re.findall(r'"""(.*?)"""', text, flags=re.S)]:
        lines = [re.sub(r"^[ \t]*(///?<?|#)|^    ", "", line) for line in block.split("\n")]
        words = "\n".join("" if line.startswith("  ") else line for line in lines)
        for paragraph in re.split(r"\n\s*\n", re.sub(r"`[^`]*`", "code", words)):
            for sentence in re.split(r"(?<=[.?!:])\s+", paragraph):
                yield " ".join(sentence.split())


def main():
    listed = "--list" in sys.argv
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    listing = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True)
    names = [n for n in listing.stdout.split("\0") if n.endswith(SUFFIXES) and n not in EXCEPT]
    files = {}
    for name in names:
        try:
            with open(name, encoding="utf-8") as file:
                files[name] = file.read()
        except (FileNotFoundError, UnicodeDecodeError):
            pass
    lowered = {name: text.lower() for name, text in files.items()}
    failed = []
    if not files:
        failed.append("no file was read")
    with open("tests/words.txt", encoding="utf-8") as file:
        rules = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    for rule in rules:
        allowed, phrase, instead = (part.strip() for part in rule.split("|"))
        # In lower case, and a word first: it is found at once, and what is before it looked up there.
        first, *others = map(re.escape, phrase.lower().split())
        words = "".join(r"\s+(?:///?\s*|#\s*)?" + word for word in others)
        pattern = re.compile(rf"{first}(?<!\w{first}){words}(?!\w)")
        found = []
        for name, text in lowered.items():
            found += [f"{name}:{text.count(chr(10), 0, m.start()) + 1}"
                      for m in pattern.finditer(text)]
        if listed and found:
            print(f"{len(found):4} {phrase}: {', '.join(found)}")
        if len(found) > int(allowed):
            failed.append(f"`{phrase}` occurs {len(found)} times, {allowed} allowed; "
                          f"write {instead}: {', '.join(found[:20])}")
    long = [(name, s) for name, text in files.items() if name.endswith(".md")
            for s in sentences(text) if len(s.split()) > LONGEST]
    long += [(name, s) for name, text in files.items()
             if not name.endswith(".md") and not name.startswith(GENERATORS)
             for s in comment_sentences(text) if len(s.split()) > LONGEST]
    if listed:
        for name, s in long:
            print(f"{name}: {len(s.split())} words: {s}")
    most = int(next(rule for rule in rules if "(sentences)" in rule).split("|")[0])
    if len(long) > most:
        failed.append(f"{len(long)} sentences of pages and comments have more than {LONGEST} words, {most} "
                      "allowed: python3 tests/words.py --list")
    print("\n".join(failed) if failed else f"{len(rules)} phrases, {len(long)} long sentences left")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
