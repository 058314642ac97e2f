# SPDX-License-Identifier: Apache-2.0
"""How large programs are that need no other file: static, stripped, of headers alone, beside the libraries of PyTorch
and onnxruntime.

python3 bench/sizes.py [--python <python>]... [--launcher <program>] [folder]
                                 builds in the folder (default build/sizes) and runs what it has built;
                                 --python: one that has torch or onnxruntime, whose libraries are weighed.
                                 Builds for musl need pip's ziglang for Python of this script
python3 bench/sizes.py --check glibc [--launcher <program>] [folder]
                                 builds and runs those of one system; the exit status is 1 if one is over its target
python3 bench/tables.py --take build/sizes/results.json
                                 makes bench/results/sizes.json of it
"""

import argparse
import glob
import os
import re
import subprocess
import sys

from contest import record_builds
import ports

PROGRAMS = [  # what it is, its source below the repository, flags, most megabytes by a system
    ("trains the README's MLP", "tests/cost/mlp.cpp", [], {"glibc": 1.9, "musl": 0.8}),
    ("reads an image by ResNet-18, with weights from a safetensors file", "bench/model_cost.cpp",
     ["-DCOST_START", "-DHEADER=<xla/models/resnet.hpp>", "-DMODEL=ResNet18<>", "-DTASK=image_model"],
     {"glibc": 1.7, "musl": 1.1}),
]
LEVELS = ["-Os"]
SMALL = ["-ffunction-sections", "-fdata-sections"]
LIMITS = ["-fconstexpr-ops-limit=4000000000", "-fconstexpr-loop-limit=100000000",
          "-fconstexpr-depth=4096"]
CLANG_LIMITS = ["-fconstexpr-steps=4000000000", "-fconstexpr-depth=4096"]
LINK = ["-static", "-s", "-Wl,--gc-sections"]
SYSTEMS = {  # compiler, flags of every command, of the compiler alone
    "glibc": (["g++"], [], LIMITS),
    "musl": (ports.ZIG, ["-target", "x86_64-linux-musl"], CLANG_LIMITS),
}
# Of each package, the libraries that a C++ program of it loads to run on a processor alone.
PEERS = {
    "torch": ["lib/libtorch_cpu.so", "lib/libc10.so", "lib/libgomp*.so*"],
    "onnxruntime": ["capi/libonnxruntime.so.*"],
}


def run(command, work):
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(system, source, flags, level, work, launcher):
    compiler, target, limits = SYSTEMS[system]
    headers = ["-I", os.path.join(ports.ROOT, "include"), "-isystem", work,
               "-isystem", os.environ.get("XLA_EIGEN", "/usr/include/eigen3")]
    run(launcher + compiler + target + ["-std=c++20", level, "-DNDEBUG"] + SMALL + limits + headers +
        flags + ["-c", os.path.join(ports.ROOT, source), "-o", "program.o"], work)
    run(compiler + target + [level, "program.o", "-o", "program", "-lpthread"] + LINK, work)
    return os.path.getsize(os.path.join(work, "program"))


def check(flags, work):
    """The program does its work: it prints losses, or reads a file that it has written."""
    if "-DCOST_START" in flags:
        run(["./program", "weights.safetensors", "write"], work)
        run(["./program", "weights.safetensors"], work)
        return
    said = run(["./program"], work)
    if not re.fullmatch(r"([\d.]+\n){3}", said):
        raise SystemExit(f"three losses expected, not: {said}")


def peer_rows(python):
    """The libraries of a Python's packages, without loading them."""
    code = ("import importlib.util as u, importlib.metadata as m\n"
            f"for name in {list(PEERS)}:\n"
            "    s = u.find_spec(name)\n"
            "    if s: print(name, m.version(name), s.submodule_search_locations[0])\n")
    for line in run([python, "-c", code], None).splitlines():
        name, version, folder = line.split(" ", 2)
        files = sorted(os.path.realpath(f) for pattern in PEERS[name]
                       for f in glob.glob(os.path.join(folder, pattern)))
        if not files:
            raise SystemExit(f"{folder} has none of {', '.join(PEERS[name])}")
        yield (f"{name} {version}: {', '.join(sorted({os.path.basename(f) for f in files}))}",
               sum(os.path.getsize(f) for f in set(files)))


def check_system(system, launcher, folder):
    """0 if each program of this system is within its target, else 1."""
    failed = False
    for what, source, flags, most in PROGRAMS:
        work = ports.folder("sizes", folder)
        size = build(system, source, flags, LEVELS[0], work, launcher)
        check(flags, work)
        failed |= size / 1e6 > most[system]
        print(f"{size / 1e6:.2f} MB of {most[system]}: {what}", flush=True)
    return int(failed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", choices=list(SYSTEMS))
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("--launcher", default="")
    parser.add_argument("folder", nargs="?", default=os.path.join(ports.ROOT, "build", "sizes"))
    options = parser.parse_args()
    if options.check:
        return check_system(options.check, options.launcher.split(), os.path.abspath(options.folder))
    table = ["| x86-64 Linux, MB | built with | " + " | ".join(f"`{x}`" for x in LEVELS) + " | target |",
             "|---|---|" + "---|" * len(LEVELS) + "---|"]
    print("\n".join(table))
    for what, source, flags, most in PROGRAMS:
        for system in SYSTEMS:
            compiler = ports.Port(system, SYSTEMS[system][0])
            if compiler.missing():
                print(f"not for {system}: {compiler.missing()} is not installed")
                continue
            sizes = []
            for level in LEVELS:
                work = ports.folder("sizes")
                sizes.append(build(system, source, flags, level, work, options.launcher.split()))
                check(flags, work)
            reached = "reached" if min(sizes) / 1e6 <= most[system] else "missed"
            table.append(f"| {what} | {compiler.version()}, {system} | " +
                         " | ".join(f"{size / 1e6:.2f}" for size in sizes) +
                         f" | {most[system]}: {reached} |")
            print(table[-1], flush=True)
    if options.python:
        table += ["", "| libraries that a program of these loads, as pip installs them | MB |", "|---|---|"]
        print("\n".join(table[-3:]))
    for python in options.python:
        for what, size in peer_rows(python):
            table.append(f"| {what} | {size / 1e6:.1f} |")
            print(table[-1], flush=True)
    os.makedirs(options.folder, exist_ok=True)
    record_builds(options.folder, "sizes", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
