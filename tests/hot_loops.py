# SPDX-License-Identifier: Apache-2.0
"""Looks for spilled vectors and calls in the hot loops of kernels, by the disassembly of an object.

python3 tests/hot_loops.py <object> --kernels <regex> --least <loops> [--objdump <program>] [--show]
python3 tests/hot_loops.py --compile "<compiler> <flag>…" [--flags <file>] …
                                     of tests/kernel/hot_loops.cpp, which it compiles first; the file
                                     has further flags, one a line

A hot loop is an innermost one with at least EIGHT multiply-adds of vectors. A vector on the stack is a
spill there, and a call clobbers all vectors. The functions whose names match --kernels must have
neither. --least: the test fails where they have fewer hot loops, as it then looks at something else.
It reads x86-64 and aarch64.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

EIGHT = 8
MULTIPLY_ADDS = {
    "x86-64": re.compile(r"vfn?m(add|sub)\d*p[sd]$|v?mulp[sd]$|vdpbf16ps$"),
    "aarch64": re.compile(r"fml[as]$|fmul$|bf(dot|mmla)$"),
}
VECTOR = {"x86-64": re.compile(r"%[xyz]mm"), "aarch64": re.compile(r"\b[qvds]\d+\b")}
CALL = {"x86-64": re.compile(r"call"), "aarch64": re.compile(r"blr?$")}
JUMP = {"x86-64": re.compile(r"j[a-z]+$"), "aarch64": re.compile(r"b(\.[a-z]+)?$|cbn?z$|tbn?z$")}
FRAME = {"x86-64": re.compile(r"mov +%rsp,%rbp"), "aarch64": re.compile(r"mov\s+x29, sp")}
STACK = {"x86-64": (r"\(%rsp[,)]", r"\(%rbp[,)]"), "aarch64": (r"\[sp[],]", r"\[x29[],]")}


def functions(objdump, path):
    """(architecture, name, [(address, mnemonic, operands)]) of every function."""
    said = subprocess.run([objdump, "-d", "--no-show-raw-insn", path], capture_output=True,
                          text=True, check=True).stdout
    kind = "aarch64" if "littleaarch64" in said[:500] else "x86-64"
    for part in re.split(r"\n(?=[0-9a-f]+ <[^\n]*>:\n)", said)[1:]:
        lines = part.split("\n")
        name = re.match(r"[0-9a-f]+ <(.*)>:", lines[0])[1]
        code = []
        for line in lines[1:]:
            found = re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)", line)
            if found:
                code.append((int(found[1], 16), found[2], found[3]))
        yield kind, name, code


def innermost(kind, code):
    """The loops that contain no other: index of the first and the last instruction."""
    at = {address: i for i, (address, _, _) in enumerate(code)}
    loops = set()
    for i, (address, word, operands) in enumerate(code):
        target = re.search(r"\b([0-9a-f]+) <", operands)
        if not JUMP[kind].match(word) or not target or int(target[1], 16) > address:
            continue
        if int(target[1], 16) in at:
            loops.add((at[int(target[1], 16)], i))
    # One head with several jumps back is one loop: the longest that has no other head inside.
    longest = {}
    for first, last in loops:
        longest[first] = max(last, longest.get(first, last))
    return [(first, last) for first, last in longest.items()
            if not any(first < other <= last for other in longest)]


def hot_loops(objdump, path):
    """(function, multiply-adds, vectors on the stack, calls, text) of every hot loop."""
    for kind, name, code in functions(objdump, path):
        framed = any(FRAME[kind].match(f"{word} {operands}") for _, word, operands in code)
        stack = re.compile("|".join(STACK[kind][:2 if framed else 1]))
        for first, last in innermost(kind, code):
            body = code[first:last + 1]
            adds = sum(bool(MULTIPLY_ADDS[kind].match(word) and VECTOR[kind].search(operands))
                       for _, word, operands in body)
            if adds < EIGHT:
                continue
            spills = sum(bool(stack.search(operands) and VECTOR[kind].search(operands))
                         for _, _, operands in body)
            calls = sum(bool(CALL[kind].match(word)) for _, word, _ in body)
            yield name, adds, spills, calls, [f"{w} {o}" for _, w, o in body]


def plain_name(name):
    said = subprocess.run(["c++filt", name], capture_output=True, text=True, check=True).stdout
    return said.strip().replace("xla::kernel::detail::", "")


def check(path, options):
    loops = [loop for loop in hot_loops(options.objdump, path)
             if re.search(options.kernels, plain_name(loop[0]))]
    found = [loop for loop in loops if loop[2] or loop[3]]
    for name, adds, spills, calls, body in loops if options.show else found:
        print(f"{adds} multiply-adds, {spills} vectors on the stack, {calls} calls: {plain_name(name)}")
        if options.show and (spills or calls):
            print("\n".join("    " + line for line in body))
    print(f"{len(loops)} hot loops, {len(found)} with spilled vectors or calls")
    if len(loops) < options.least:
        print(f"at least {options.least} were expected in {path}")
    return int(bool(found) or len(loops) < options.least)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("object", nargs="?")
    parser.add_argument("--compile")
    parser.add_argument("--flags")
    parser.add_argument("--kernels", default="")
    parser.add_argument("--least", type=int, required=True)
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--show", action="store_true", help="every hot loop, and the code of those found")
    options = parser.parse_args()
    if not options.compile:
        return check(options.object, options)
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "hot_loops.o")
        flags = []
        if options.flags:
            with open(options.flags, encoding="utf-8") as file:
                flags = [line for line in file.read().split("\n") if line]
        words = options.compile.split()
        options_at = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
        source = os.path.join(here, "kernel", "hot_loops.cpp")
        subprocess.run(words[:options_at] + flags + words[options_at:] + ["-c", source, "-o", path],
                       check=True)
        return check(path, options)


if __name__ == "__main__":
    sys.exit(main())
