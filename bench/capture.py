# SPDX-License-Identifier: Apache-2.0
"""What compiling a step costs the C++ compiler: time and memory against the number of blocks."""

import glob
import os
import statistics
import subprocess
import sys
import time

BLOCKS = (4, 16, 64)
LAYERS = (2, 4, 12, 24)  # of the decoder, with the first level
LEVELS = ("-O2", "-O3")
MODES = {"include": 0, "eager": 1, "compiled": 2}
REPEATS = 2  # the faster counts
INCLUDES = {"xla": "xla/xla.hpp", "eigen": "Eigen/Core", "hana": "xla/base/hana.hpp"}
TURNS = 5  # of the includes; their medians count
INCLUDE_LIMIT = 1.5  # times Eigen/Core, plus what Hana costs
LIMIT = {"seconds": 12, "megabytes": 1000}  # 64 blocks beyond the include
DECODER_LIMIT = {"seconds": 20, "megabytes": 1500}  # 24 layers beyond the include


def compile_once(command):
    """(seconds, of which processor time, megabytes of the largest process)."""
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"this does not compile: {' '.join(command)}")
    seconds = time.perf_counter() - start
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def include_costs(command, out):
    """User seconds of headers alone, one after the other in turns, less those of no header."""
    sources = {"nothing": ""} | {name: f"#include <{path}>\n" for name, path in INCLUDES.items()}
    seconds = {name: [] for name in sources}
    file = os.path.join(out, "include.cpp")
    for _ in range(TURNS):
        for name, source in sources.items():
            with open(file, "w", encoding="utf-8") as to:
                to.write(source + "int main() {}\n")
            process = subprocess.Popen([*command, "-O1", "-fsyntax-only", file])
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                raise RuntimeError(f"this does not compile: {source}")
            seconds[name].append(usage.ru_utime)
    os.remove(file)
    nothing = statistics.median(seconds.pop("nothing"))
    return {name: statistics.median(all_) - nothing for name, all_ in seconds.items()}


def measure(flags_file, out):
    """Every mode and number of blocks with one compiler, one at a time."""
    with open(flags_file, encoding="utf-8") as file:
        compiler, *flags = [line for line in file.read().split("\n") if line]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True,
                             check=True).stdout.split("\n")[0]
    folder = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(out, "capture_program")
    rows = []

    def make(level, mode, blocks, source, made, *more):
        command = [compiler, *flags, level, *more, os.path.join(folder, source), "-o", made]
        wall, cpu, memory = min(compile_once(command) for _ in range(REPEATS))
        rows.append({"level": level, "mode": mode, "blocks": blocks, "seconds": wall,
                     "cpu_seconds": cpu, "megabytes": memory,
                     "binary_kilobytes": os.path.getsize(made) / 1024})
        print(f"  {os.path.basename(compiler)} {level} {mode} {blocks}: {wall:.1f} s "
              f"({cpu:.1f} s of a processor), {memory:.0f} MB", file=sys.stderr)

    def build(level, mode, blocks, source, *more):
        make(level, mode, blocks, source, program, *more, "-pthread")
        subprocess.run([program], check=True, timeout=300)

    for level in LEVELS:
        for mode, number in MODES.items():
            for blocks in {"include": [0], "eager": BLOCKS[-1:], "compiled": BLOCKS}[mode]:
                build(level, mode, blocks, "capture.cpp", f"-DMODE={number}", f"-DBLOCKS={blocks}")
    for layers in LAYERS:
        build(LEVELS[0], "decoder", layers, "capture_decoder.cpp", f"-DLAYERS={layers}")
    build(LEVELS[0], "loop", LAYERS[-1], "capture_decoder.cpp", f"-DLAYERS={LAYERS[-1]}",
          "-DSCAN_LAYERS=true")
    linked = "-DXLA_EXTERN_RUNTIME"
    sources = sorted(glob.glob(os.path.join(folder, "..", "cmake", "runtime", "*.cpp")))
    objects = [os.path.join(out, os.path.basename(s) + ".o") for s in sources]
    for source, made in zip(sources, objects):
        make(LEVELS[0], "runtime", 0, source, made, linked, "-c")
    build(LEVELS[0], "linked", BLOCKS[-1], "capture.cpp", "-DMODE=2", f"-DBLOCKS={BLOCKS[-1]}", linked,
          *objects)
    for made in objects:
        os.remove(made)
    os.remove(program)
    return {"compiler": version, "rows": rows,
            "includes": include_costs([compiler, *flags], out)}


def find(result, level, mode, blocks=0):
    return next(r for r in result["rows"]
                if (r["level"], r["mode"], r["blocks"]) == (level, mode, blocks))


def beyond(result, level, blocks, mode="compiled"):
    """Seconds, processor seconds and megabytes of a compiled step beyond the include."""
    base, step = find(result, level, "include"), find(result, level, mode, blocks)
    return [step[key] - base[key] for key in ("seconds", "cpu_seconds", "megabytes")]


def show(result):
    print(f"\nCapture: the step of residual nets, 2 layers a block ({result['compiler']})")
    cost = result["includes"]
    ratio = (cost["xla"] - cost["hana"]) / cost["eigen"]
    print(f"  including alone: xla.hpp {cost['xla']:.2f} s, Eigen/Core {cost['eigen']:.2f} s, "
          f"Hana {cost['hana']:.2f} s; less Hana {ratio:.2f} times Eigen/Core, target "
          f"at most {INCLUDE_LIMIT}: {'reached' if ratio <= INCLUDE_LIMIT else 'missed'}")
    for level in LEVELS:
        base, eager = find(result, level, "include"), find(result, level, "eager", BLOCKS[-1])
        print(f"  {level}: xla.hpp alone {base['seconds']:.1f} s, {base['megabytes']:.0f} MB; "
              f"{BLOCKS[-1]} blocks, eager {eager['seconds']:.1f} s, {eager['megabytes']:.0f} MB")
        show_steps(result, level, "compiled", BLOCKS, "blocks", LIMIT)
    once = sum(r["seconds"] for r in result["rows"] if r["mode"] == "runtime")
    print(f"  {BLOCKS[-1]} blocks with xla::runtime linked, {LEVELS[0]}: "
          f"{beyond(result, LEVELS[0], BLOCKS[-1], 'linked')[0]:.1f} s beyond the include, and "
          f"{once:.1f} s once for a project")
    print(f"  The step of a decoder with AdamW, {LEVELS[0]}")
    show_steps(result, LEVELS[0], "decoder", LAYERS, "layers", DECODER_LIMIT)
    seconds, cpu, megabytes = beyond(result, LEVELS[0], LAYERS[-1], "loop")
    print(f"  {LAYERS[-1]} layers as a loop (DecoderConfig::scan_layers): {seconds:.1f} s ({cpu:.1f} s "
          f"of a processor) and {megabytes:.0f} MB beyond the include")


def show_steps(result, level, mode, counts, what, limit):
    print(f"  {what:>8}{'compiled s':>12}{'MB':>7}{'beyond s':>10}{'cpu s':>7}{'MB':>7}"
          f"{'ms, kB for one more':>28}{'program kB':>12}")
    last = None
    for count in counts:
        step = find(result, level, mode, count)
        seconds, cpu, megabytes = beyond(result, level, count, mode)
        growth = ""
        if last:
            each = 1000 / (count - last[0])
            growth = f"{(cpu - last[1]) * each:.0f}, {(megabytes - last[2]) * each:.0f}"
        last = count, cpu, megabytes
        print(f"  {count:8}{step['seconds']:12.1f}{step['megabytes']:7.0f}{seconds:10.1f}"
              f"{cpu:7.1f}{megabytes:7.0f}{growth:>28}{step['binary_kilobytes']:12.0f}")
    ok = seconds <= limit["seconds"] and megabytes <= limit["megabytes"]
    print(f"  {counts[-1]} {what} beyond the include, target at most {limit['seconds']} s and "
          f"{limit['megabytes']} MB: {'reached' if ok else 'missed'}")
