# SPDX-License-Identifier: Apache-2.0
"""Prints PyTorch's functions and what does them here as Markdown: python3 pytorch_table.py <include folder>

Fails where pytorch_functions.txt and the headers disagree, and where no test calls a function."""
import pathlib
import re
import sys


def public_names(include):
    """What the ops' and the run time's headers define in namespace xla."""
    names = set()
    for header in [*include.glob("op/**/*.hpp"), *include.glob("run/state/*.hpp")]:
        text = re.sub(r"//.*", "", header.read_text())
        text = re.sub(r"^namespace (xla::)?detail \{.*?^\}", "", text, flags=re.M | re.S)
        for line in re.findall(r"^\w.*\(.*", text, re.M):  # members are indented
            names |= set(re.findall(r"(\w+)\(", line))
    return names


def called(name, tests):
    """Whether a test writes name( or gives it to a macro, as JOIN(name)."""
    return re.search(rf"\b{name}(<[^;()]*>)?[()]", tests)


def main():
    tests = "".join(p.read_text() for p in (pathlib.Path(__file__).parents[1] / "tests").rglob("*.cpp"))
    here = public_names(pathlib.Path(sys.argv[1]) / "xla")
    wrong, rows, counts = [], [], {"the same": 0, "another form": 0, "composed": 0, "missing": 0}
    for line in (pathlib.Path(__file__).parent / "pytorch_functions.txt").read_text().splitlines():
        if line.startswith("#") or not line:
            continue
        if line.startswith("["):
            rows.append(f"\n## {line[1:-1]}\n\n| PyTorch | here | |\n|---|---|---|")
            continue
        name, how, form = (line + "  ").split(" ", 2)
        kind = {"": "the same", "=": "another form", "~": "composed", "-": "missing"}[how]
        counts[kind] += 1
        if (kind == "the same") != (name in here):
            wrong.append(f"{name} is said to be {kind}")
        if kind == "the same" and not called(name, tests):
            wrong.append(f"no test calls {name}")
        shown = f"`{form.strip()}`" if form.strip() else f"`{name}`" if kind == "the same" else ""
        rows.append(f"| `{name}` | {shown.replace('|', '&#124;')} | {kind} |")
    if wrong or sum(counts.values()) < 400:
        sys.exit("pytorch_functions.txt: " + "; ".join(wrong or ["functions are missing"]))
    print(", ".join(f"{n} {kind}" for kind, n in counts.items()) + ".")
    print("\n".join(rows))


main()
