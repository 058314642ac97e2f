# SPDX-License-Identifier: Apache-2.0
"""Links of pages on the site of docs.cmake: python3 cmake/docs_links.py <root> <folder of html>

Pages link to each other and to sources as in the repository. Doxygen follows links to pages, but
not to their headings, nor to sources: here they go to the heading, and to a copy of the source as text.
Pages also get what readers without a screen or a mouse need and Doxygen 1.9 leaves out: a language,
headings of each level, and blocks that scroll by keys. Names in tables may break after their parts.
"""

import glob
import html
import os
import re
import shutil
import sys


def slug(heading):
    """A heading's anchor as GitHub makes it."""
    text = html.unescape(re.sub(r"<[^>]*>", "", heading)).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def page_of(source):
    return "index.html" if source == "README.md" else \
        "md_" + source[:-3].replace("/", "_") + ".html"


def break_names(cell):
    """A cell of a table whose code may break after _, / and ::."""
    def breakable(code):
        parts = re.split(r"(<[^>]*>)", code.group(1))
        parts[::2] = [re.sub(r"(_|/|::)(?=\w)", r"\1<wbr/>", part) for part in parts[::2]]
        return f"<code>{''.join(parts)}</code>"
    return re.sub(r"<code>(.*?)</code>", breakable, cell.group(0), flags=re.S)


def make_accessible(site):
    scrolls = re.compile(r'<(div class="fragment"|table class="(?:markdownTable|doxtable)")')
    for path in glob.glob(os.path.join(site, "**", "*.html"), recursive=True):
        with open(path, encoding="utf-8") as file:
            text = before = file.read()
        text = re.sub(r'<html (?!lang)', '<html lang="en" ', text, count=1)
        text = scrolls.sub(r'<\1 tabindex="0"', text)
        text = re.sub(r"<td[ >].*?</td>", break_names, text, flags=re.S)
        if os.path.basename(path).startswith("namespacemembers"):
            text = re.sub(r"<(/?)h3>", r"<\1h2>", text)
        if text != before:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


def main():
    root, site = map(os.path.abspath, sys.argv[1:])
    sources = {}  # page of the site: page of the repository
    for path in glob.glob(os.path.join(root, "**", "*.md"), recursive=True):
        source = os.path.relpath(path, root)
        if os.path.exists(os.path.join(site, page_of(source))):
            sources[page_of(source)] = source
    texts, places = {}, {}
    for page in sources:
        with open(os.path.join(site, page), encoding="utf-8") as file:
            texts[page] = file.read()
        places[page] = {slug(heading): place for place, heading in re.findall(
            r'<h\d><a class="anchor" id="([^"]+)"></a>\s*(.*?)</h\d>', texts[page], re.S)}

    def copy(target):
        """A source, or the names of a folder's files, as text."""
        path, name = os.path.join(root, target), os.path.join("sources", target + ".txt")
        to = os.path.join(site, name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if os.path.isdir(path):
            with open(to, "w", encoding="utf-8") as file:
                file.write("\n".join(sorted(os.listdir(path))) + "\n")
        elif target.endswith((".svg", ".png")):
            name = name[:-4]
            shutil.copyfile(path, os.path.join(site, name))
        else:
            shutil.copyfile(path, to)
        return name

    for page, source in sources.items():
        def follow(match):
            attribute, link = match.groups()
            path, _, place = html.unescape(link).partition("#")
            if ":" in link or os.path.exists(os.path.join(site, path)) and path:
                return match.group(0)
            target = os.path.normpath(os.path.join(os.path.dirname(source), path)) \
                if path else source
            to = page_of(target) if target.endswith(".md") else ""
            if to in sources:
                there = places[to].get(place, place)
                return f'{attribute}="{to}{"#" + there if there else ""}"'
            if path and os.path.exists(os.path.join(root, target)):
                return f'{attribute}="{copy(target)}"'
            return match.group(0)

        text = re.sub(r'(href|src)="([^"]+)"', follow, texts[page])
        with open(os.path.join(site, page), "w", encoding="utf-8") as file:
            file.write(text)

    # Doxygen 1.9 lists concepts among the namespaces without making pages of undocumented ones.
    path = os.path.join(site, "namespaces.html")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        text = re.sub(r'<a class="el" href="(concept[^"#]*)[^"]*"[^>]*>(.*?)</a>', lambda m:
                      m.group(0 if os.path.exists(os.path.join(site, m.group(1))) else 2), text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    make_accessible(site)


if __name__ == "__main__":
    main()
