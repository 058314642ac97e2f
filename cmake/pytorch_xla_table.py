# SPDX-License-Identifier: Apache-2.0
"""Prints the names of PyTorch/XLA and what does the same here as Markdown: python3 pytorch_xla_table.py <root>

Fails where a name of pytorch_xla_names.json has no line in pytorch_xla_table.txt, or a line no name. It fails, too, where a form
names what the headers do not have, and where no test uses a name that is said to be the same."""
import json
import pathlib
import re
import sys

KINDS = {"": "the same", "=": "another form", "!": "refused", "~": "does not apply", "?": "missing"}
HERE = pathlib.Path(__file__).parent


def add_header(text, names):
    """Qualified names that a header declares outside of namespaces detail: those of namespaces, and members."""
    spaces, depth, owner = [], 0, ""
    for line in text.splitlines():
        line = re.sub(r"\s*//.*", "", re.sub(r"'[{}]'|\"[^\"]*\"", "", line))
        if space := re.match(r"(?:inline )?namespace ([\w:]+) \{", line):
            spaces.append((space[1], depth))
        depth += line.count("{") - line.count("}")
        while spaces and depth <= spaces[-1][1]:
            spaces.pop()
        within = "::".join(name for name, _ in spaces)
        if "detail" in within or re.match("#|namespace|return", line):
            continue
        kind = re.match(r"(?:template <.*> )?(?:struct|class|enum class|using) (\w+)(.*)", line)
        if kind:
            owner = f"{within}::{kind[1]}"
            names.add(owner)
            names.update(f"{owner}::{n}" for n in re.findall(r"\w+", kind[2]) if "enum" in line)
        elif re.match(r"\w.*\(", line):
            owner = ""
            names.add(f"{within}::" + re.search(r"(\w*)\(", line)[1])
        elif owner and (member := re.match(r"  (?:\[\[.*?\]\] )?\w[\w<>:,&* ]* &?(\w+)(?:\(| =|;)", line)):
            names.add(f"{owner}::{member[1]}")


def declared(root):
    names, macros, variables = set(), set(), set()
    for header in sorted((root / "include/xla").rglob("*.hpp")):
        text = header.read_text()
        add_header(text, names)
        macros |= set(re.findall(r"^#define (XLA_\w+)", text, re.M))
        variables |= set(re.findall(r'"((?:XLA|PJRT)_\w+)"', text))
    return names, macros | variables


def unknown(form, names, words):
    """What a form names that is not there."""
    return [n for n in re.findall(r"xla(?:::\w+)+", form) if n not in names] + \
        [w for w in re.findall(r"\b(?:XLA|PJRT)_\w+", form) if w not in words]


def lines_of(text):
    """Module -> name -> (kind, form or reason, remark)."""
    modules = {}
    for line in text.splitlines():
        if line.startswith("["):
            here = modules.setdefault(line[1:-1], {})
        elif line and not line.startswith("#"):
            name, rest = line.split(" ", 1)
            mark = rest.split(" ", 1)[0]
            mark, rest = (mark, rest[2:]) if mark in KINDS else ("", rest)
            form, _, remark = rest.partition(" ; ")
            if name in here:
                raise SystemExit(f"pytorch_xla_table.txt: {name} stands twice")
            here[name] = KINDS[mark], form, remark
    return modules


def check(name, status, there, tests):
    """What is wrong with a line."""
    kind, form, remark = status
    if kind in ("the same", "another form"):
        yield from (f"{name}: there is no {n}" for n in unknown(form + " " + remark, *there))
    if kind == "the same":
        short = form.split("::")[-1]
        if short != name.split(".")[-1]:
            yield f"{name}: {form} is another name"
        if not re.search(rf"\b(?:Basic)?{short}\b", tests):
            yield f"{name}: no test uses {form}"
    elif not form:
        yield f"{name}: {kind}, and nothing else is said"


def section(package, module, names, said):
    """A module's part of the page, and its names with the status of each."""
    rows = [f"\n## {module}\n\n| {package} | here | |\n|---|---|---|"]
    for name, how in names.items():
        kind, form, remark = said.get(name) or said["*"]
        code = kind in ("the same", "another form")
        shown = f"`{form}`" + (f": {remark}" if remark else "") if code else form
        rows.append(f"| `{name}` | {shown.replace('|', '&#124;')} | {kind} |")
    return rows


def page(root, listed, said):
    tests = "".join(p.read_text() for p in (root / "tests").rglob("*.cpp"))
    there, wrong, rows, counts = declared(root), [], [], {}
    for package, of in listed.items():
        title = f"{package} {of['version']}"
        count = counts[title] = dict.fromkeys(KINDS.values(), 0)
        for module, names in of["modules"].items():
            here = said.pop(module, {})
            missing = [n for n in names if n not in here]
            wrong += [f"{module}.{n} has no line" for n in missing if "*" not in here]
            wrong += [f"{module}.{n} is not one of its names" for n in here if n not in names and n != "*"]
            wrong += [f"{module}: * stands for no name"] if "*" in here and not missing else []
            wrong += [w for n, s in here.items() for w in check(f"{module}.{n}", s, there, tests)]
            if not missing or "*" in here:
                rows += section(title, module, names, here)
                for name in names:
                    count[(here.get(name) or here["*"])[0]] += 1
    wrong += [f"{module} is none of its modules" for module in said]
    if wrong or sum(n for c in counts.values() for n in c.values()) < 500:
        sys.exit("pytorch_xla_table.txt: " + "; ".join(wrong or ["names are missing"]))
    return counts, rows


def main():
    root = pathlib.Path(sys.argv[1])
    listed = json.loads((HERE / "pytorch_xla_names.json").read_text())
    counts, rows = page(root, listed, lines_of((HERE / "pytorch_xla_table.txt").read_text()))
    print("""The public names of torch_xla and of its successor torch-tpu: functions, classes and values that public modules
define. Not listed are the packages' tests and torchax. A name that is refused or does not apply has its reason; what is
missing applies.
""")
    print("| | " + " | ".join(KINDS.values()) + " |\n|---|" + "---|" * len(KINDS))
    for title, count in counts.items():
        print(f"| `{title}` | " + " | ".join(map(str, count.values())) + " |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
