#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which systems, processors and compilers run the library: builds tests/ports/core.cpp for each and
runs it, by an emulator where that is needed.

python3 bench/ports.py                    those whose tools are installed
python3 bench/ports.py --only aarch64     those whose names match
python3 bench/ports.py --record           also writes what was tried to bench/results/ports.json;
                                          then run tables.py
python3 bench/ports.py --launcher ccache  what starts compilers

The tools are Debian's cross compilers, qemu-user, wine64, wasi-libc with nodejs, and pip's ziglang
for Python of this script. The exit status is that of the ports that run: 1 if one of them fails.
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
RESULT = os.path.join(ROOT, "bench", "results", "ports.json")
ZIG = [sys.executable, "-m", "ziglang", "c++"]
NODE = """import { WASI } from 'node:wasi'; import fs from 'node:fs';
const wasi = new WASI({ version: 'preview1', args: ['core'], env: {}, preopens: { '.': '.' } });
const module = await WebAssembly.compile(fs.readFileSync(process.argv[2]));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
"""


class Port:
    """A platform: how the program is compiled, linked and run; `run` is None where it cannot be."""

    def __init__(self, name, compiler, flags=(), link=(), run=(), text=None):
        self.name, self.text = name, text or name
        self.compiler = compiler if isinstance(compiler, list) else [compiler]
        self.flags, self.link = list(flags), list(link)
        self.run = None if run is None else list(run)

    def missing(self):
        """The tool that is not installed, or None."""
        if self.compiler == ZIG:
            if importlib.util.find_spec("ziglang") is None:
                return "ziglang"
        elif shutil.which(self.compiler[0]) is None:
            return self.compiler[0]
        if self.run and shutil.which(self.run[0]) is None:
            return self.run[0]
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
    Port("x86-64-clang", "clang++-16", text="x86-64 Linux, clang"),
    Port("x86-64-libc++", "clang++-19", ["-stdlib=libc++"], ["-stdlib=libc++"],
         text="x86-64 Linux, libc++"),
    Port("portable", "g++", PLAIN, text="plain C++: no threads, system, extensions"),
    Port("aarch64", "aarch64-linux-gnu-g++", link=["-static"], run=["qemu-aarch64"],
         text="aarch64 Linux"),
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
         run=["node", "--no-warnings", "run.mjs"], text="WebAssembly, WASI"),
    Port("macos-aarch64", ZIG, ["-target", "aarch64-macos"], ["-target", "aarch64-macos"],
         run=None, text="aarch64 macOS"),
    Port("macos-x86-64", ZIG, ["-target", "x86_64-macos"], ["-target", "x86_64-macos"],
         run=None, text="x86-64 macOS"),
]


def folder(name):
    """An empty folder to build in, with Boost alone: a system's own headers are not another's."""
    work = os.path.join(ROOT, "build", "ports", name)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    os.symlink(os.environ.get("XLA_BOOST", "/usr/include/boost"), os.path.join(work, "boost"))
    with open(os.path.join(work, "run.mjs"), "w", encoding="utf-8") as file:
        file.write(NODE)
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


def exception_runtime(work, launcher):
    """libc++abi and libunwind with WebAssembly's exceptions, of the sources that pip's ziglang has:
    Debian's libraries have none. The files, or what is missing."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None:
        return None
    zig = os.path.join(os.path.dirname(spec.origin), "lib")
    flags = ["--target=wasm32-wasi", "-O2", "-fwasm-exceptions", "-w", "-DNDEBUG",
             "-D_LIBCXXABI_HAS_NO_THREADS", "-D_LIBUNWIND_HAS_NO_THREADS",
             "-D_LIBCPP_BUILDING_LIBRARY", "-D_LIBCXXABI_BUILDING_LIBRARY"]
    abi, made = os.path.join(zig, "libcxxabi"), []
    for name in ("cxa_exception", "cxa_personality", "cxa_exception_storage", "cxa_handlers",
                 "cxa_default_handlers", "cxa_aux_runtime", "cxa_vector", "cxa_virtual",
                 "private_typeinfo", "stdlib_exception", "stdlib_stdexcept", "stdlib_typeinfo",
                 "abort_message", "fallback_malloc"):
        made.append((["clang++-19", "-stdlib=libc++", "-std=c++23"] + flags +
                     ["-I", abi + "/include", "-I", abi + "/src", "-I", zig + "/libcxx/src"],
                     f"{abi}/src/{name}.cpp", name + ".o"))
    unwind = os.path.join(zig, "libunwind")
    made.append((["clang-19"] + flags + ["-I", unwind + "/include"],
                 unwind + "/src/Unwind-wasm.c", "unwind.o"))
    for command, source, to in made:
        built = attempt(launcher + command + ["-c", source, "-o", to], work)
        if built.returncode:
            raise SystemExit(f"{source}: {first_error(built.stderr)}")
    return [to for _, _, to in made]


def try_port(port, work, launcher):
    """(state, what the program printed); the state begins with "runs", "links" or "fails"."""
    eigen = os.environ.get("XLA_EIGEN", "/usr/include/eigen3")
    headers = ["-I", os.path.join(ROOT, "include"), "-isystem", work, "-isystem", eigen]
    standard = [] if any(f.startswith("-std=") for f in port.flags) else ["-std=c++20"]
    built = attempt(launcher + port.compiler + standard + ["-O1"] + port.flags + headers +
                    ["-c", SOURCE, "-o", "core.o"], work)
    if built.returncode:
        return "fails to compile: " + first_error(built.stderr), ""
    threads = ["-lpthread"] if "linux" in port.text.lower() else []
    program = "core.exe" if port.name == "windows" else "./core"
    extra = exception_runtime(work, launcher) if port.name == "wasi" else []
    if extra is None:
        return "compiles; pip's ziglang is missing for the rest", ""
    linked = attempt(port.compiler + ["core.o", "-o", program] + extra + threads + port.link, work)
    if linked.returncode:
        return "fails to link: " + first_error(linked.stderr), ""
    if port.run is None:
        return "links, not run", ""
    ran = attempt(port.run + [program], work)
    if ran.returncode:
        return "fails: " + first_error(ran.stdout + ran.stderr), ran.stdout
    return "runs, all checks hold", ran.stdout


def losses(said):
    found = re.search(r"^losses (.*)$", said, re.M)
    return [float.fromhex(x) for x in found.group(1).split()] if found else []


def compare(own, reference):
    if not own or not reference:
        return "–"
    if own == reference:
        return "the same bits"
    most = max(abs(a - b) / abs(b) for a, b in zip(own, reference))
    return f"differ by {most:.1e}"


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
        "versions": "Eigen 3.4",
        "command": "python3 bench/ports.py --record",
        "date": datetime.date.today().isoformat(),
        "origin": "recorded",
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
    options = parser.parse_args()
    rows, reference, failed = [], [], False
    for port in PORTS:
        if not re.search(options.only, port.name) and port is not PORTS[0]:
            continue
        missing = port.missing()
        if missing:
            print(f"{port.name}: not tried, {missing} is not installed", flush=True)
            continue
        start = time.monotonic()
        state, said = try_port(port, folder(port.name), options.launcher.split())
        own = losses(said)
        reference = reference or own
        bits = compare(own, reference)
        failed |= state.startswith("fails")
        print(f"{port.name}: {state}; {bits}; {time.monotonic() - start:.0f} s", flush=True)
        rows.append([port.text, port.version(), state, bits])
        if options.record:
            record(rows)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
