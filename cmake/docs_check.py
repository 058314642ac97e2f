# SPDX-License-Identifier: Apache-2.0
"""Checks the site of docs.cmake: links and anchors, widths of pages, accessibility.

python3 cmake/docs_check.py <folder of html> [chromium [axe.min.js]]

Links are looked up among files and their ids; every page has a language and a title, every image a
text, and headings leave no level out. Where a headless Chromium is given, each page of Markdown and
a few pages of each kind of the reference are laid out 390 pixels wide, and what their bodies need
beyond that fails. With axe-core, its rules of WCAG 2 A and AA are run on the contents of each such
page, in light and in dark colours.
"""

import glob
import html
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.parse

WIDTH = 390
# The kinds of pages of the reference, by their names, and how many of each a browser looks at: none
# of which the rules take minutes, as of the list of all names.
KINDS = ("class*.html", "struct*.html", "namespace*.html", "concept*.html", "group__*.html",
         "*_8hpp.html", "*_8hpp_source.html", "dir_*.html", "annotated.html", "functions*.html")
OF_A_KIND, LARGEST = 2, 200_000


class Page(html.parser.HTMLParser):
    """The links and ids of a page, and what a reader who does not see it misses."""

    def __init__(self):
        super().__init__()
        self.links, self.ids, self.faults = [], set(), []
        self.language = self.title = False
        self.level = 1

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
            self.faults.append(f"the image {given.get('src')} has no alternative text")
        if tag == "html":
            self.language = bool(given.get("lang"))
        if tag == "title":
            self.title = True
        if re.fullmatch("h[1-6]", tag):
            if int(tag[1]) > self.level + 1:
                self.faults.append(f"a heading {tag} follows one of level {self.level}")
            self.level = int(tag[1])

    def missing(self):
        if not self.language:
            self.faults.append("the page has no language")
        if not self.title:
            self.faults.append("the page has no title")
        return self.faults


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
        found += [f"{name}: {fault}" for fault in page.missing()]
    return len(pages), found


def sample(folder):
    """Pages of the reference: of each kind a large one, and others spread evenly over the rest."""
    names = []
    for kind in KINDS:
        pages = sorted((p for p in glob.glob(os.path.join(folder, kind))
                        if os.path.getsize(p) < LARGEST), key=os.path.getsize, reverse=True)
        step = max(1, len(pages) // OF_A_KIND)
        names += [os.path.basename(p) for p in pages[::step][:OF_A_KIND]]
    return names


def lay_out(folder, chromium, size, visit):
    """What JavaScript's `visit(frame)` resolves to, a JSON value for each page that it looks at."""
    names = sorted(os.path.basename(p) for p in glob.glob(os.path.join(folder, "md_*.html")))
    names += ["index.html"] + sample(folder)
    script = f"""<script>
      const visit = {visit};
      const page = name => new Promise(done => {{
        const frame = document.createElement('iframe');
        frame.style = '{size}';
        frame.onload = () => setTimeout(async () => {{
          done([name, await visit(frame)]);
          frame.remove();
        }}, 300);
        frame.src = 'file://{os.path.abspath(folder)}/' + name;
        document.body.append(frame);
      }});
      (async () => {{
        const seen = [];
        for (const name of {json.dumps(names)}) seen.push(await page(name));
        document.body.innerHTML = '<pre></pre>';
        document.querySelector('pre').textContent = JSON.stringify(seen);
      }})();
    </script>"""
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "frames.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"<!doctype html><meta charset='utf-8'><body>{script}</body>")
        done = subprocess.run(
            [chromium, "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
             "--virtual-time-budget=600000", "--dump-dom", f"file://{path}"],
            capture_output=True, text=True, timeout=480, check=True)
    found = re.search(r"<pre>(.*)</pre>", done.stdout, re.S)
    seen = json.loads(html.unescape(found.group(1))) if found else []
    if len(seen) != len(names):
        raise SystemExit(f"the browser laid out {len(seen)} of {len(names)} pages")
    return seen


def wide(folder, chromium):
    """Pages whose contents need more than a phone's width."""
    seen = lay_out(folder, chromium, f"width:{WIDTH}px;height:800px", """async f => {
      const d = f.contentDocument, c = d.querySelector('.contents') || d.body;
      return Math.max(c.scrollWidth, d.body.scrollWidth);
    }""")
    return len(seen), [f"{name} is {width} pixels wide on a screen of {WIDTH}"
                       for name, width in seen if width > WIDTH]


def inaccessible(folder, chromium, axe):
    """What axe-core finds in the contents of pages: not in the frame around them, which is the
    theme's. Its rules of colours see one of all texts that look alike, in the same colours in the
    same surroundings: of each word of code they would take nearly all of the time."""
    with open(axe, encoding="utf-8") as file:
        source = json.dumps(file.read()).replace("</", "<\\/")
    seen = lay_out(folder, chromium, "width:1280px;height:900px", f"""(() => {{
    const seen = new Set(), rules = ['color-contrast', 'link-in-text-block'];
    const looks_new = (f, colours) => {{
      const fresh = [], under = new Map();
      const backgrounds = e => {{
        if (!e) return '';
        if (!under.has(e)) {{
          const s = f.contentWindow.getComputedStyle(e);
          const own = [s.backgroundColor, s.backgroundImage, s.opacity, s.filter].join();
          const above = backgrounds(e.parentElement);
          under.set(e, above.endsWith(own) ? above : above + ';' + own);
        }}
        return under.get(e);
      }};
      for (const e of f.contentDocument.querySelectorAll('.header *, .contents *')) {{
        if (![...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.data.trim())) continue;
        const look = [colours, backgrounds(e), ...[e, e.parentElement].map(one => {{
          const s = f.contentWindow.getComputedStyle(one);
          return [s.color, s.fontSize, s.fontWeight, s.textShadow, s.textDecorationLine, s.display];
        }})].join();
        if (!seen.has(look)) fresh.push(e);
        seen.add(look);
      }}
      return fresh;
    }};
    return async f => {{
      const d = f.contentDocument, found = [];
      const code = d.createElement('script');
      code.textContent = {source};
      d.head.append(code);
      for (const colours of ['light-mode', 'dark-mode']) {{
        d.documentElement.classList.remove('light-mode', 'dark-mode');
        d.documentElement.classList.add(colours);
        const ask = (include, more) => f.contentWindow.axe.run(
          {{include}}, {{...more, resultTypes: ['violations'], iframes: false}});
        const results = [], fresh = looks_new(f, colours);
        if (colours === 'light-mode')
          results.push(await ask([['.header'], ['.contents']], {{
            runOnly: ['wcag2a', 'wcag2aa'],
            rules: Object.fromEntries(rules.map(r => [r, {{enabled: false}}]))}}));
        if (fresh.length)
          results.push(await ask(fresh, {{runOnly: {{type: 'rule', values: rules}}}}));
        for (const v of results.flatMap(r => r.violations))
          found.push(colours + ': ' + v.id + ', ' + v.nodes.length + ' times, as '
                     + v.nodes[0].html.slice(0, 120));
      }}
      return found;
    }};
    }})()""")
    return len(seen), [f"{name}: {fault}" for name, faults in seen for fault in faults]


def main():
    folder = sys.argv[1]
    count, found = broken(folder)
    print(f"{count} pages, {len(found)} faults of links, languages, titles, headings and images")
    if len(sys.argv) > 2:
        count, more = wide(folder, sys.argv[2])
        print(f"{count} pages laid out, {len(more)} too wide")
        found += more
    if len(sys.argv) > 3:
        count, more = inaccessible(folder, sys.argv[2], sys.argv[3])
        print(f"{count} pages in light and dark, {len(more)} faults of accessibility")
        found += more
    if found:
        raise SystemExit("\n".join(found[:40]))


if __name__ == "__main__":
    main()
