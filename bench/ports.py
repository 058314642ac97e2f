#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which systems, processors and compilers run the library: builds tests/ports/core.cpp for each and
runs it, by an emulator where that is needed.

python3 bench/ports.py                    those whose tools are installed
python3 bench/ports.py --only aarch64     those whose names match
python3 bench/ports.py --record           also writes what was tried to bench/results/ports.json;
                                          then run tables.py
python3 bench/ports.py --launcher ccache  what starts compilers
python3 bench/ports.py --reference <program>
                                          whose losses are compared with, in place of the first's
python3 bench/ports.py --folder <folder>  what is built is left there; default build/ports
python3 bench/ports.py --flags=<flags>    after those of every compiler

The tools are Debian's cross compilers, qemu-user, wine64, wasi-libc with nodejs, and, for Python of
this script, pip's ziglang, and eigency, which has the headers of Eigen 5. XLA_EIGEN_NEXT names a
folder with Eigen's main branch, whose packets are for any processor. The exit status is 1 if a port
fails, or its losses differ by more than rounding.
"""

import argparse
import datetime
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.join(ROOT, "tests", "ports", "core.cpp")
ROUNDING = 1e-5  # how far losses may be apart after four steps
RESULT = os.path.join(ROOT, "bench", "results", "ports.json")
ZIG = [sys.executable, "-m", "ziglang", "c++"]
NODE = ["node", "--no-warnings", os.path.join(ROOT, "cmake", "wasi", "run.mjs")]
BROWSER = ["node", os.path.join(ROOT, "cmake", "wasi", "browse.mjs")]


class Port:
    """A platform: how the program is compiled, linked and run; `run` is None where it cannot be.
    `also_run`: another way to run it.
    `algorithms`: those of bfloat16 that its processors have, with options of `run`.
    `eigen5`: with pip's Eigen 5, `eigen_next`: with its main branch. `refusal`: the sentence with
    which the library refuses it."""

    def __init__(self, name, compiler, flags=(), link=(), run=(), text=None, eigen5=False,
                 refusal=None, algorithms=(), also_run=(), eigen_next=False):
        self.name, self.text = name, text or name
        self.compiler = compiler if isinstance(compiler, list) else [compiler]
        self.flags, self.link = list(flags), list(link)
        self.run = None if run is None else list(run)
        self.eigen5, self.eigen_next, self.refusal = eigen5, eigen_next, refusal
        self.also_run = list(also_run)
        self.algorithms = list(algorithms) or [([], [])]

    def eigen(self):
        """The folder of Eigen's headers."""
        if self.eigen5:
            return os.path.join(os.path.dirname(importlib.util.find_spec("eigency").origin), "eigen")
        if self.eigen_next:
            return os.environ["XLA_EIGEN_NEXT"]
        return os.environ.get("XLA_EIGEN", "/usr/include/eigen3")

    def missing(self):
        """The tool that is not installed, or None."""
        if self.eigen5 and importlib.util.find_spec("eigency") is None:
            return "eigency"
        if self.eigen_next and not os.environ.get("XLA_EIGEN_NEXT"):
            return "XLA_EIGEN_NEXT"
        if self.compiler == ZIG:
            if importlib.util.find_spec("ziglang") is None:
                return "ziglang"
        elif shutil.which(self.compiler[0]) is None:
            return self.compiler[0]
        if self.run and shutil.which(self.run[0]) is None:
            return self.run[0]
        if self.also_run == BROWSER and shutil.which("chromium-headless-shell") is None:
            return "chromium-headless-shell"
        return None

    def version(self):
        said = subprocess.run(self.compiler + ["--version"], capture_output=True, text=True,
                              check=True).stdout.splitlines()[0]
        number = re.search(r"version ([\d.]+)|\) ([\d.]+)|clang ([\d.]+)", said)
        kind = "zig's clang" if self.compiler == ZIG else "clang" if "clang" in said else "g++"
        return f"{kind} {next(n for n in number.groups() if n)}"


PLAIN = ["-DXLA_PORTABLE", "-DXLA_NO_THREADS", "-DXLA_NO_SYSTEM"]
PORTS = [
    Port("x86-64", "g++", text="x86-64 Linux"),  # the reference, so the first
    Port("x86-64-c++23", "g++", ["-std=c++23"], text="x86-64 Linux, C++23"),
    Port("x86-64-no-rtti", "g++", ["-fno-rtti"], text="x86-64 Linux, `-fno-rtti`"),
    Port("x86-64-no-exceptions", "g++", ["-fno-exceptions"], text="x86-64 Linux, `-fno-exceptions`",
         refusal="xla reports errors by exceptions: compile without -fno-exceptions"),
    Port("x86-64-eigen5", "g++", text="x86-64 Linux, Eigen 5.0.1", eigen5=True),
    Port("x86-64-clang", "clang++-16", text="x86-64 Linux, clang"),
    Port("x86-64-clang-c++23", "clang++-16", ["-std=c++2b"], text="x86-64 Linux, clang, C++23"),
    Port("x86-64-clang-19", "clang++-19", text="x86-64 Linux, clang 19"),
    Port("x86-64-libc++", "clang++-19", ["-stdlib=libc++"], ["-stdlib=libc++"],
         text="x86-64 Linux, libc++"),
    Port("x86-64-clang-22", "clang++-22", text="x86-64 Linux, the newest clang"),
    Port("x86-64-clang-22-c++23", "clang++-22", ["-std=c++23"],
         text="x86-64 Linux, the newest clang, C++23"),
    Port("portable", "g++", PLAIN, text="plain C++: no threads, system, extensions"),
    Port("aarch64", "aarch64-linux-gnu-g++", ["-fno-schedule-insns"], link=["-static"], run=["qemu-aarch64"],
         text="aarch64 Linux",
         algorithms=[(["-cpu", "max"], ["dot"]), (["-cpu", "cortex-a72"], ["fma"])]),
    Port("i386", "i686-linux-gnu-g++", ["-msse2", "-mfpmath=sse"], ["-static"],
         text="i386 Linux, SSE2"),
    Port("s390x", "s390x-linux-gnu-g++", link=["-static"], run=["qemu-s390x"],
         text="s390x Linux, big-endian"),
    Port("musl", ZIG, ["-target", "x86_64-linux-musl"],
         ["-target", "x86_64-linux-musl", "-static"], text="x86-64 Linux, musl and libc++"),
    Port("windows", "x86_64-w64-mingw32-g++-posix", link=["-static"], run=["wine"],
         text="x86-64 Windows, MinGW"),
    Port("wasi", "clang++-19",
         ["--target=wasm32-wasi", "-stdlib=libc++", "-fwasm-exceptions"],
         ["--target=wasm32-wasi", "-stdlib=libc++", "-fwasm-exceptions"],
         run=NODE, also_run=BROWSER, text="WebAssembly in node and Chromium"),
    Port("wasi-simd", "clang++-19",
         ["--target=wasm32-wasi", "-stdlib=libc++", "-fwasm-exceptions", "-msimd128",
          "-DEIGEN_VECTORIZE_GENERIC", "-DEIGEN_GENERIC_VECTOR_SIZE_BYTES=16"],
         ["--target=wasm32-wasi", "-stdlib=libc++", "-fwasm-exceptions"],
         run=NODE, also_run=BROWSER,
         text="WebAssembly with SIMD by Eigen's main branch, in node and Chromium", eigen_next=True),
    Port("macos-aarch64", ZIG, ["-target", "aarch64-macos"], ["-target", "aarch64-macos"],
         run=None, text="aarch64 macOS"),
    Port("macos-x86-64", ZIG, ["-target", "x86_64-macos"], ["-target", "x86_64-macos"],
         run=None, text="x86-64 macOS"),
]


def folder(name, base=os.path.join(ROOT, "build", "ports")):
    """An empty folder to build in, with Boost and nlohmann's JSON alone: a system's own headers are
    not another's."""
    work = os.path.join(base, name)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    os.symlink(os.environ.get("XLA_BOOST", "/usr/include/boost"), os.path.join(work, "boost"))
    json_headers = os.environ.get("XLA_JSON", "/usr/include/nlohmann")
    if os.path.isdir(json_headers):  # the program checks safetensors files with it
        os.symlink(json_headers, os.path.join(work, "nlohmann"))
    return work


def attempt(command, work, limit=900):
    try:
        return subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=limit,
                              check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"longer than {limit} s")


def first_error(said):
    lines = [line for line in said.splitlines() if "error" in line or "FAILED" in line]
    return (lines or said.splitlines() or ["no output"])[0].strip().replace(ROOT + os.sep, "")


def exception_runtime(port, work, launcher):
    """The object file of what Debian's libc++abi for WebAssembly lacks. Runs the test of that."""
    source = os.path.join(ROOT, "cmake", "wasi", "exceptions.cpp")
    test = os.path.join(ROOT, "tests", "ports", "exceptions.cpp")
    compiler = port.compiler + ["-std=c++20", "-O1"] + port.flags
    for command in (launcher + compiler + ["-c", source, "-o", "runtime.o"],
                    compiler + [test, "runtime.o", "-o", "exceptions"],
                    port.run + ["exceptions"]):
        done = attempt(command, work)
        if done.returncode:
            raise SystemExit(f"{port.name}: {first_error(done.stdout + done.stderr)}")
    return ["runtime.o"]


def try_port(port, work, launcher, flags):
    """(state, what the program printed); the state begins with "runs", "links" or "fails"."""
    headers = ["-I", os.path.join(ROOT, "include"), "-isystem", work, "-isystem", port.eigen()]
    standard = [] if any(f.startswith("-std=") for f in port.flags) else ["-std=c++20"]
    built = attempt(launcher + port.compiler + standard + ["-O1"] + flags + port.flags + headers +
                    ["-c", SOURCE, "-o", "core.o"], work)
    if port.refusal:
        refused = built.returncode and port.refusal in first_error(built.stderr)
        return f"refused: “{port.refusal}”" if refused else "fails: it is not refused", ""
    if built.returncode:
        return "fails to compile: " + first_error(built.stderr), ""
    threads = ["-lpthread"] if "linux" in port.text.lower() else []
    program = "core.exe" if port.name == "windows" else "./core"
    extra = exception_runtime(port, work, launcher) if "wasi" in port.name else []
    linked = attempt(port.compiler + ["core.o", "-o", program] + extra + threads + port.link, work)
    if linked.returncode:
        return "fails to link: " + first_error(linked.stderr), ""
    if port.run is None:
        return "links, not run", ""
    ways = [(port.run + options, arguments) for options, arguments in port.algorithms]
    for run, arguments in ways + ([(port.also_run, [])] if port.also_run else []):
        ran = attempt(run + [program] + arguments, work)
        if ran.returncode:
            return "fails: " + first_error(ran.stdout + ran.stderr), ran.stdout
    return "runs, all checks hold", ran.stdout


def losses(said):
    found = re.search(r"^losses (.*)$", said, re.M)
    return [float.fromhex(x) for x in found.group(1).split()] if found else []


def difference(own, reference):
    """The largest relative one; None where there is nothing to compare."""
    if not own or not reference:
        return None
    return max(abs(a - b) / abs(b) for a, b in zip(own, reference, strict=True))


def text_of(differ):
    return "–" if differ is None else "the same bits" if differ == 0 else f"differ by {differ:.1e}"


def record(tried):
    """Writes these rows, and keeps those of platforms that were not tried now, in PORTS' order."""
    rows = {}
    if os.path.exists(RESULT):
        with open(RESULT, encoding="utf-8") as file:
            rows = {row[0]: row for row in json.load(file)["blocks"][1]["rows"]}
    rows.update({row[0]: row for row in tried})
    result = {
        "title": "Platforms",
        "order": 12,
        "machine": "x86-64 Linux, the others by emulators",
        "versions": "Eigen 3.4 where no other is named",
        "command": "python3 bench/ports.py --record",
        "date": datetime.date.today().isoformat(),
        "blocks": [
            {"text": "One program (tests/ports/core.cpp) for each platform: a convolutional network "
                     "trains in eager, traced and compiled mode with the same bits, files come back, "
                     "threads and replicas work or are refused. Losses are those of four steps, "
                     "compared with those of the first row."},
            {"columns": ["platform", "compiler", "state", "losses"],
             "rows": [rows[port.text] for port in PORTS if port.text in rows]},
        ],
    }
    with open(RESULT, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1, ensure_ascii=False)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--launcher", default="")
    parser.add_argument("--reference")
    parser.add_argument("--flags", default="")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "ports"))
    options = parser.parse_args()
    rows, reference, failed = [], [], False
    if options.reference:
        reference = losses(attempt([os.path.abspath(options.reference)], None).stdout)
    for port in PORTS:
        first = port is PORTS[0] and not options.reference
        if not re.search(options.only, port.name) and not first:
            continue
        missing = port.missing()
        if missing:
            print(f"{port.name}: not tried, {missing} is not installed", flush=True)
            continue
        start = time.monotonic()
        state, said = try_port(port, folder(port.name, options.folder),
                               options.launcher.split(), options.flags.split())
        own = losses(said)
        reference = reference or own
        differ = difference(own, reference)
        bits = text_of(differ)
        failed |= state.startswith("fails") or (differ or 0) > ROUNDING
        print(f"{port.name}: {state}; {bits}; {time.monotonic() - start:.0f} s", flush=True)
        rows.append([port.text, port.version(), state, bits])
        if options.record:
            record(rows)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
