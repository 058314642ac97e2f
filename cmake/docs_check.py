# SPDX-License-Identifier: Apache-2.0
"""Looks at the site of docs.cmake: broken links and anchors, and pages wider than a phone.

python3 cmake/docs_check.py <folder of html> [chromium]

Links are looked up among files and their ids. Where a headless Chromium is given, each
page of Markdown is laid out 390 pixels wide, and what its body needs beyond that fails.
"""

import glob
import html.parser
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse

WIDTH = 390


class Page(html.parser.HTMLParser):
    """The links and ids of a page, and images without a text."""

    def __init__(self):
        super().__init__()
        self.links, self.ids, self.mute = [], set(), []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        for key in ("id", "name"):
            if given.get(key):
                self.ids.add(given[key])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("img", "script") and given.get("src"):
            self.links.append(given["src"])
        if tag == "img" and "alt" not in given:
            self.mute.append(given.get("src"))


def broken(folder):
    pages = {}
    for path in glob.glob(os.path.join(folder, "**", "*.html"), recursive=True):
        page = Page()
        with open(path, encoding="utf-8", errors="replace") as file:
            page.feed(file.read())
        pages[os.path.normpath(path)] = page
    if not pages:
        raise SystemExit(f"{folder} has no pages")
    found = []
    for path, page in sorted(pages.items()):
        name = os.path.relpath(path, folder)
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("javascript:"):
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(path),
                                                   urllib.parse.unquote(parts.path))) \
                if parts.path else path
            if not os.path.exists(target):
                found.append(f"{name}: {link} is not there")
            elif parts.fragment and target in pages and \
                    urllib.parse.unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{name}: {link} has no such place")
        found += [f"{name}: the image {source} has no alternative text" for source in page.mute]
    return len(pages), found


def wide(folder, chromium):
    """Pages whose contents need more than a phone's width."""
    names = sorted(os.path.basename(p) for p in glob.glob(os.path.join(folder, "md_*.html")))
    names += ["index.html"]
    frames = "".join(f"<iframe data-n='{n}' src='file://{os.path.abspath(folder)}/{n}' "
                     f"style='width:{WIDTH}px;height:800px'></iframe>" for n in names)
    script = f"""<script>addEventListener('load', () => setTimeout(() => {{
      const lines = [...document.querySelectorAll('iframe')].map(f => {{
        const d = f.contentDocument, c = d.querySelector('.contents') || d.body;
        return f.dataset.n + ' ' + Math.max(c.scrollWidth, d.body.scrollWidth);
      }});
      document.body.innerHTML = '<pre>' + lines.join('\\n') + '</pre>';
    }}, 500))</script>"""
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "frames.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"<!doctype html><body>{frames}{script}</body>")
        done = subprocess.run(
            [chromium, "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
             "--virtual-time-budget=60000", "--dump-dom", f"file://{path}"],
            capture_output=True, text=True, timeout=240, check=True)
    seen = re.findall(r"^(?:.*<pre>)?(\S+\.html) (\d+)", done.stdout, re.M)
    if len(seen) != len(names):
        raise SystemExit(f"the browser laid out {len(seen)} of {len(names)} pages")
    return len(seen), [f"{name} is {width} pixels wide on a screen of {WIDTH}"
                       for name, width in seen if int(width) > WIDTH]


def main():
    folder = sys.argv[1]
    count, found = broken(folder)
    print(f"{count} pages, {len(found)} broken links")
    if len(sys.argv) > 2:
        count, more = wide(folder, sys.argv[2])
        print(f"{count} pages laid out, {len(more)} too wide")
        found += more
    if found:
        raise SystemExit("\n".join(found[:40]))


if __name__ == "__main__":
    main()
