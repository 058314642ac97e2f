# SPDX-License-Identifier: Apache-2.0
"""How fast WebAssembly trains: the MLP's step, and that of the page examples/web, under node and natively with SSE2, on
one thread.

python3 bench/web.py [--launcher <program>] [--rounds <n>] [--page <folder>] [folder]
                                 builds in the folder (default build/web_speed), then measures in turns;
                                 XLA_EIGEN_NEXT is a folder with Eigen's main branch, --page the one
                                 where cmake/web.cmake has built the page, whose files are weighed
python3 bench/tables.py --take build/web_speed/results.json
                                 makes bench/results/web.json of it
"""

import argparse
import gzip
import os
import statistics

from contest import Program, record_builds
import ports
import sizes

STEPS = [("MLP 784-128-10, 64 images", "mlp", ["compiled", "1"], 300),
         ("the page's convolutional network, 16 images", "web", [], 20)]
TARGET, MOST_BYTES = 0.5, 450_000
AGREE = 1e-3  # how far the last losses may be apart, relatively


def build(port, name, limits, work, launcher):
    """The command that starts a program of bench."""
    headers = ["-I", os.path.join(ports.ROOT, "include"), "-isystem", work, "-isystem", port.eigen()]
    sizes.run(launcher + port.compiler + ["-std=c++20", "-O3", "-DNDEBUG"] + limits + port.flags + headers +
              ["-c", os.path.join(ports.ROOT, "bench", name + ".cpp"), "-o", name + ".o"], work)
    wasm = "wasi" in port.name
    objects = [name + ".o"]
    if wasm:
        objects += ports.exception_runtime(port, work, launcher) + ["-Wl,-z,stack-size=1048576"]
    sizes.run(port.compiler + objects + ["-o", name] + port.link + ([] if wasm else ["-lpthread"]), work)
    return (ports.NODE if wasm else []) + [os.path.join(work, name)]


def compare(native, wasm, steps, rounds):
    """The medians of nanoseconds of a step, measured in turns."""
    team = [Program(command, 1) for command in (native, wasm)]
    for program in team:
        program.ask(f"run {steps}")  # node compiles what runs often again
    taken = [[], []]
    for _ in range(rounds):
        turns = [program.ask(f"run {steps}") for program in team]
        ours, theirs = (turn["loss"] for turn in turns)
        if abs(ours - theirs) > AGREE * abs(ours):
            raise SystemExit(f"{native[-1]}: the losses are {ours} and {theirs}")
        for all_turns, turn in zip(taken, turns):
            all_turns.append(turn["ns"] / steps)
    for program in team:
        program.close()
    return [statistics.median(all_turns) for all_turns in taken]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--page")
    parser.add_argument("folder", nargs="?", default=os.path.join(ports.ROOT, "build", "web_speed"))
    options = parser.parse_args()
    native, wasm = ports.Port("native", "g++"), next(p for p in ports.PORTS if p.name == "wasi-simd")
    for port in (native, wasm):
        if port.missing():
            raise SystemExit(f"{port.missing()} is missing")
    node = sizes.run(["node", "--version"], None).strip()
    folders = [ports.folder(p.name, os.path.abspath(options.folder)) for p in (native, wasm)]
    launcher = options.launcher.split()
    table = [f"| ms a step, one thread | SSE2, {native.version()} | "
             f"WebAssembly, {wasm.version()}, node {node} | speed | target |",
             "|---|---|---|---|---|"]
    print("\n".join(table), flush=True)
    for what, name, arguments, steps in STEPS:
        commands = [build(port, name, limits, work, launcher) + arguments for port, limits, work in
                    zip((native, wasm), (sizes.LIMITS, sizes.CLANG_LIMITS), folders)]
        ours, theirs = (ns / 1e6 for ns in compare(*commands, steps, options.rounds))
        reached = "reached" if ours / theirs >= TARGET else "missed"
        table.append(f"| {what} | {ours:.3g} | {theirs:.3g} | {ours / theirs:.2f} | {TARGET}: {reached} |")
        print(table[-1], flush=True)
    if options.page:
        table += ["", "| KB | as it is | compressed by gzip | target |", "|---|---|---|---|"]
        print("\n".join(table[-3:]))
        plain = packed = 0
        for name in os.listdir(options.page):
            with open(os.path.join(options.page, name), "rb") as file:
                content = file.read()
            plain, packed = plain + len(content), packed + len(gzip.compress(content))
        reached = "reached" if packed <= MOST_BYTES else "missed"
        table.append(f"| the page of examples/web | {plain / 1e3:.0f} | {packed / 1e3:.0f} | "
                     f"{MOST_BYTES / 1e3:.0f}: {reached} |")
        print(table[-1])
    record_builds(options.folder, "web", table)


if __name__ == "__main__":
    main()
