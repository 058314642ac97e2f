# SPDX-License-Identifier: Apache-2.0
"""Spelling of pages, comments and code by codespell; 77, skipped, where that is not installed.

tests/spelling.txt has the words that are right here: misspelled names that tests load, parts of
words that tokenizers cut, names of others. At most ten.
"""

import os
import shutil
import subprocess
import sys

MOST = 10
SUFFIXES = (".md", ".hpp", ".cpp", ".cmake", ".py", "CMakeLists.txt")


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open("tests/spelling.txt", encoding="utf-8") as file:
        right = file.read().split()
    if len(right) > MOST:
        sys.exit(f"tests/spelling.txt has {len(right)} words, {MOST} allowed: fix the spelling")
    codespell = shutil.which("codespell")
    if not codespell:
        print("codespell is not installed: apt-get install codespell")
        sys.exit(77)
    listing = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True)
    names = [n for n in listing.stdout.split("\0") if n.endswith(SUFFIXES) and os.path.exists(n)]
    if not names:
        sys.exit("no file was read")
    found = subprocess.run([codespell, "--ignore-words", "tests/spelling.txt", *names], check=False)
    if found.returncode == 0:
        print(f"{len(names)} files, {len(right)} words of their own")
    sys.exit(1 if found.returncode else 0)


if __name__ == "__main__":
    main()
