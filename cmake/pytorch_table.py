# SPDX-License-Identifier: Apache-2.0
"""Prints PyTorch's names and what does the same here as Markdown: python3 pytorch_table.py <include folder>

Fails where pytorch_functions.txt and the headers disagree, and where no test calls a function."""
import pathlib
import re
import sys

KINDS = {"": "the same", "=": "another form", "-": "missing"}


def text_of(header):
    """Without comments and what is internal."""
    text = re.sub(r"//.*", "", header.read_text())
    return re.sub(r"^namespace (xla::)?detail \{.*?^\}", "", text, flags=re.M | re.S)


def functions(*headers):
    """What the headers define in a namespace: members are indented."""
    lines = [line for h in headers for line in re.findall(r"^\w.*\(.*", text_of(h), re.M)]
    return {name for line in lines for name in re.findall(r"(\w+)\(", line)}


def classes(*headers):
    pattern = r"^(?:struct|class|using) (\w+)"
    return {name for h in headers for name in re.findall(pattern, text_of(h), re.M)}


def methods(*headers):
    """Members, and the lists from which tensor/methods.hpp makes them, but for those that only say what to write."""
    names = set()
    for h in headers:
        text = text_of(h)
        names |= set(re.findall(r"^  (?:\[\[.*?\]\] )?\w[\w<>:,&* ]* &?(\w+)\(", text, re.M))
        names |= set(re.findall(r"\bm\((\w+)\)", text))
    return names


def public_names(include):
    """Of each part of PyTorch, by how its sections begin, what there is of that kind here."""
    of = lambda pattern: sorted(include.glob(pattern))
    tensors = functions(*of("op/**/*.hpp"), *of("run/state/*.hpp"), include / "ext/dlpack.hpp")
    return {
        "torch.nn: ": classes(*of("nn/*.hpp")),
        "torch.nn.init: ": functions(include / "nn/init.hpp"),
        "torch.optim: ": classes(*of("optim/*.hpp")),
        "torch.optim.lr_scheduler: ": classes(*of("optim/schedule/*.hpp")),
        "torch.distributions: ": classes(*of("distributions/*.hpp")) | functions(*of("distributions/*.hpp")),
        "torch.linalg: ": tensors,
        "torch.fft: ": set(),
        "torch.special: ": tensors,
        "torch.Tensor: ": methods(include / "tensor.hpp", include / "tensor/methods.hpp"),
        "torch": tensors,
    }


def called(name, tests):
    """Whether a test writes name(, or gives it to a macro, as JOIN(name), or names a class."""
    if name[0].isupper():
        return re.search(rf"\b(Basic)?{name}\b", tests)
    return re.search(rf"\b{name}(<[^;()]*>)?[()]", tests)


def main():
    tests = "".join(p.read_text() for p in (pathlib.Path(__file__).parents[1] / "tests").rglob("*.cpp"))
    names = public_names(pathlib.Path(sys.argv[1]) / "xla")
    wrong, rows, here, total = [], [], set(), {}
    for line in (pathlib.Path(__file__).parent / "pytorch_functions.txt").read_text().splitlines():
        if line.startswith("#") or not line:
            continue
        if line.startswith("["):
            section = line[1:-1]
            rows.append(f"\n## {section}\n\n| PyTorch | here | |\n|---|---|---|")
            here = next(found for begin, found in names.items() if section.startswith(begin))
            counts = total.setdefault(section.split(":")[0], dict.fromkeys(KINDS.values(), 0))
            continue
        name, how, form = (line + "  ").split(" ", 2)
        kind = KINDS[how]
        counts[kind] += 1
        if kind != "another form" and (kind == "the same") != (name in here):
            wrong.append(f"{section}: {name} is said to be {kind}")
        if kind == "the same" and not called(name, tests):
            wrong.append(f"{section}: no test uses {name}")
        shown = f"`{form.strip()}`" if form.strip() else f"`{name}`" if kind == "the same" else ""
        rows.append(f"| `{name}` | {shown.replace('|', '&#124;')} | {kind} |")
    if wrong or sum(n for counts in total.values() for n in counts.values()) < 400:
        sys.exit("pytorch_functions.txt: " + "; ".join(wrong or ["names are missing"]))
    print("| | " + " | ".join(KINDS.values()) + " |\n|---|" + "---|" * len(KINDS))
    for part, counts in total.items():
        print(f"| `{part}` | " + " | ".join(map(str, counts.values())) + " |")
    print("\n".join(rows))


main()
