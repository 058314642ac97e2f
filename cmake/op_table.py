# SPDX-License-Identifier: Apache-2.0
"""Prints the table of all ops as Markdown, read off the headers: python3 op_table.py <include folder>"""
import pathlib
import re
import sys

HOW = {
    "map": "fused",
    "reduce": "fused over the last axis, else a step",
    "alias": "free: the same elements",
    "library": "a step of its own",
}

INTRODUCTION = """The functions on tensors, with the first sentence of their documentation.

- *types*: the element types that it accepts; `Tensor<xla::bfloat16>` computes in float and rounds.
- *gradient*: whether `backward()` goes through it. A composed function has the gradients of its parts.
- *runs as*: fused with its neighbours into one loop, a step with a kernel of its own, composed of other functions, or without work.
- *error*: at most this many units in the last place from the exact result, where the documentation promises that.
"""


def braces(text, start):
    """The text from the first { after start to its }."""
    first = depth = at = text.index("{", start)
    depth = 0
    while True:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return text[first:at]


def find_ops(text, ops):
    """Every op struct: how it runs, and whether it has a gradient; bases come before what derives from them."""
    for m in re.finditer(r"^struct (\w+)(?: : (\w+))? \{", text, re.M):
        body = braces(text, m.start())
        base = ops.get(m[2], {})
        kind = re.search(r"op_kind::(\w+)", body)
        ops[m[1]] = {
            "kind": kind[1] if kind else base.get("kind", "map"),
            "gradient": "gradient(" in body or base.get("gradient", False),
        }


def find_helpers(text):
    """Functions of namespace detail that apply an op: name to op."""
    found = {}
    for m in re.finditer(r"^constexpr [^{;=]*?\b(\w+)\([^{;]*\) \{", text, re.M):
        used = re.search(r"(?:apply|apply_at|create)<op::(\w+)", braces(text, m.end() - 1))
        if used:
            found[m[1]] = used[1]
    return found


def namespaces(text, name):
    for m in re.finditer(r"^namespace %s \{" % name, text, re.M):
        body = braces(text, m.start())
        for inner in reversed(list(re.finditer(r"^namespace detail \{", body, re.M))):  # from the end: it gets shorter
            body = body.replace(braces(body, inner.start()), "{}")
        yield body


def find_functions(text, header):
    """(name, sentence, signature, body) of each documented public function, in order."""
    for body in namespaces(text, "xla"):
        doc, seen = "", set()
        for m in re.finditer(r"((?:^///.*\n)*)^(template <[^{;]*?(?:constexpr |inline |auto )[^{;=]*?\b(\w+|operator\S+)"
                             r"\(([^{;]*?)\)(?:\s+requires[^{;]*)?) \{", body, re.M):
            doc = " ".join(line.strip("/ ") for line in m[1].splitlines()) or doc
            yield m[3], doc, m[4], braces(body, m.end() - 1), m[2]


def types_of(signature, body):
    if "Tensor<bool" in signature and "Tensor<T" not in signature:
        return "bool"
    if re.search(r"is_floating_point_v<T>|floating_type<T>", body + signature):
        return "float, double"
    return "all"


def main():
    include = pathlib.Path(sys.argv[1]) / "xla" / "op"
    headers = sorted(include.glob("*.hpp"), key=lambda p: (p.name not in ("op.hpp", "reduce.hpp"), p.name))
    headers += sorted((include / "derived").glob("*.hpp"))
    ops = {"map": {"kind": "map", "gradient": False}}
    texts = {h: h.read_text() for h in headers}
    for text in 2 * list(texts.values()):  # a base may stand in a later header
        find_ops(text, ops)
    helpers = {name: op for text in texts.values() for name, op in find_helpers(text).items()}
    rows, done = [], set()
    for header, text in texts.items():
        for name, doc, arguments, body, signature in find_functions(text, header):
            if name in done or name in ("shape_of", "kernel", "gradient") or not doc:
                continue
            done.add(name)
            names = re.findall(r"\bop::(\w+)", body + signature)
            names += [op for helper, op in helpers.items() if re.search(rf"detail::{helper}\b", body)]
            used = [ops[o] for o in names if o in ops and o != "map"]
            how = HOW[used[0]["kind"]] if used else "composed"
            gradient = "through its parts" if not used else "yes" if any(o["gradient"] for o in used) else "no"
            sentence = re.split(r"(?<=[.;])(?<!e\.g\.) ", doc)[0].rstrip(".;:").replace("|", "\\|")
            error = re.search(r"Within (\d+ ulp(?: in float, \d+ in double)?)", doc)
            rows.append(f"| `{name}` | {sentence} | {types_of(signature, body)} | {gradient} | {how} | "
                        f"{error[1] if error else ''} | "
                        f"`{header.relative_to(include.parent)}` |")
    print(INTRODUCTION)
    print("| function | what it computes | types | gradient | runs as | error | header |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(sorted(rows, key=str.lower)))


main()
