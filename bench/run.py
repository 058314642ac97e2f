# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks that run.cmake has built; prints tables, writes results.json and plots."""

import argparse
import contextlib
import io
import json
import os
import shlex
import subprocess
import sys

import attention
import build
import capture
import compare
import conv
import backends
import memory
import models
import plot
import products
import reading
import replicas
import scanned
import sequences
from contest import ENVIRONMENT, machine


PACKAGES = ("torch", "torchvision", "jax", "jaxlib", "transformers", "timm", "numpy",
            "onnxruntime", "openvino", "ncnn")
LIBMVEC = "exp, against libmvec"  # as rows.cpp calls it


@contextlib.contextmanager
def recorded():
    """What is printed within, which is printed as well."""
    kept = io.StringIO()

    class Both(io.TextIOBase):
        def write(self, text):
            kept.write(text)
            return screen.write(text)

        def flush(self):
            screen.flush()

    screen = sys.stdout
    with contextlib.redirect_stdout(Both()):
        yield lambda: kept.getvalue().strip("\n").split("\n")


def records(programs, name, *arguments):
    """What a program prints, one record a line."""
    done = subprocess.run([os.path.join(programs, f"bench_{name}"), *arguments], check=True,
                          stdout=subprocess.PIPE, text=True, env={**os.environ, **ENVIRONMENT})
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def verdict(ok):
    return "reached" if ok else "missed"


def show_overhead(rows):
    print("\nCalls of a step: nanoseconds, and allocations per call")
    for r in rows:
        low, middle, high = r["ns"]
        print(f"  {r['step']:28}{r['mode']:10}{r['threads']:2.0f} thread(s){middle:12.0f}"
              f"  ({low:.0f}-{high:.0f}){r['allocations']:10.2f}")
    compiled = [r for r in rows if r["mode"] == "compiled"]
    tiny = [r["ns"][1] for r in compiled if "4 elements" in r["step"]]
    print(f"  target three tiny ops in at most 1000 ns: {verdict(max(tiny) <= 1000)}; "
          f"target no allocation: {verdict(all(r['allocations'] == 0 for r in compiled))}")


def show_specialise(rows):
    for r in rows:
        print(f"\nSpecialising a new signature: the step of a {r['program']}, "
              f"{r['signatures']:.0f} batch sizes, milliseconds (p10, median, p90)")
        for key, label in (("first_ms", "first call"), ("steady_ms", "later calls"),
                           ("extra_ms", "difference"), ("compile_time_ms", "CompileTime")):
            print(f"  {label:14}" + "".join(f"{v:9.3f}" for v in r[key]))
        print(f"  target at most 1 ms: CompileTime {verdict(r['compile_time_ms'][1] <= 1)}, "
              f"the whole difference {verdict(r['extra_ms'][1] <= 1)}")


def show_trips(rows, most=10000):
    print(f"\nA new number of steps, each of 1 to {most:,}: microseconds (processor's)")
    print(f"  {'':24}{'extra p10':>10}{'median':>8}{'p90':>8}{'first':>9}{'again':>9}"
          f"{'reserved MB':>13}")
    for r in rows:
        low, middle, high = r["extra_us"]
        print(f"  {r['program']:24}{low:10.1f}{middle:8.1f}{high:8.1f}{r['first_us']:9.0f}"
              f"{r['again_us']:9.0f}{r['reserved_mb']:13.1f}")
    worst = max(r["extra_us"][1] for r in rows)
    print(f"  target at most 100 us beyond the steps: {verdict(worst <= 100)}")


def show_loops(rows):
    print("\nLoops, 1 thread: nanoseconds of a step (processor's)")
    print(f"  {'':24}{'whole':>10}{'beyond its kernels':>20}{'p10':>8}{'p90':>8}")
    steps = [r for r in rows if r.get("what") == "step"]
    for r in steps:
        low, middle, high = r["beyond_kernels_ns"]
        print(f"  {r['carries']:.0f} carries{'':15}{r['ns'][1]:10.0f}{middle:20.0f}{low:8.0f}"
              f"{high:8.0f}")
    print(f"  at most 100 ns beyond its kernels, of one carry, target: "
          f"{verdict(steps[0]['beyond_kernels_ns'][1] <= 100)}")
    show_trips([r for r in rows if "program" in r], 1000)
    for r in rows:
        if r.get("what") != "memory":
            continue
        share = r["allocated_carries"] / r["theory_carries"]
        print(f"  {r['steps']:.0f} steps with checkpoints, in carries: theory "
              f"{r['theory_carries']:.0f}, planned {r['planned_carries']:.1f}, allocated "
              f"{r['allocated_carries']:.1f}; at most 1.3 times the theory target: "
              f"{verdict(share <= 1.3)}")


def show_traced(rows):
    print("\nElementwise chains traced, 1 thread: speed against compiled (1 is as fast)")
    print(f"  {'':30}{'elements':>10}{'us':>10}{'compiled':>10}{'speed':>7}{'p10':>7}{'p90':>7}")
    for r in rows:
        low, middle, high = r["speed"]
        print(f"  {r['name']:30}{r['elements']:10.0f}{r['us']:10.2f}{r['compiled_us']:10.2f}"
              f"{middle:7.2f}{low:7.2f}{high:7.2f}")
    least = min(r["speed"][1] for r in rows if r["elements"] >= 1 << 20)
    print(f"  target at least 0.4 at a million elements: {verdict(least >= 0.4)}")


def show_fused(rows):
    print("\nFused regions, 1 thread: speed against a loop by hand (1 is as fast)")
    print(f"  {'':30}{'':8}{'':12}{'ns':>12}{'by hand':>12}{'speed':>7}{'p10':>7}{'p90':>7}")
    for r in rows:
        low, middle, high = r["speed"]
        print(f"  {r['name']:30}{r['what']:8}{r['level']:12}{r['ns']:12.0f}{r['by_hand_ns']:12.0f}"
              f"{middle:7.2f}{low:7.2f}{high:7.2f}")
    # In L1 the call itself takes longer than its arithmetic: overhead has that.
    lowest = min((r["speed"][1], r["name"], r["what"], r["level"]) for r in rows
                 if r["what"] == "region" or r["level"] != "L1")
    print(f"  target elementwise regions at 0.80 or more: {verdict(lowest[0] >= 0.8)} "
          f"(lowest {lowest[0]:.2f}: {', '.join(lowest[1:])})")


def show_rows(rows):
    print("\nRow regions and reductions, 1 thread: speed against a loop by hand (1 is as fast)")
    print(f"  {'':26}{'':14}{'ns':>10}{'by hand':>10}{'GB/s':>7}{'speed':>7}{'p10':>7}{'p90':>7}")
    for r in rows:
        low, middle, high = r["speed"]
        print(f"  {r['name']:26}{r['size']:14}{r['ns']:10.0f}{r['by_hand_ns']:10.0f}"
              f"{r['gb_per_s']:7.1f}{middle:7.2f}{low:7.2f}{high:7.2f}")
    for r in rows:
        if r["name"] == LIBMVEC:
            print(f"  target {LIBMVEC}'s, at 1.0 or more: {verdict(r['speed'][1] >= 1)} "
                  f"({r['speed'][1]:.2f})")


def show_parity(rows):
    print("\nA character model after 600 steps: losses on what is held out")
    for r in rows:
        print(f"  seed {r['seed']:.0f}: float32 {r['float32']:.4f}, autocast {r['autocast']:.4f}, "
              f"difference {r['difference']:+.4f}; of the last steps {r['float32_trained']:.4f}, "
              f"{r['autocast_trained']:.4f}")
    most = max(abs(r["difference"]) for r in rows)
    print(f"  target at most 0.002 for every seed: {verdict(most <= 0.002)} (most {most:.4f})")


def show_gemm(rows):
    print("\nMatrix products: GFLOP/s and share of the peak, or the bandwidth, of the same run; "
          "rounded to bfloat16, their speed as one of float32's")
    for r in rows:
        turned = "".join("t" if r[side] == "transposed" else "-" for side in "ab")
        print(f"  {r['where']:24}{r['m']:6.0f} x{r['n']:5.0f} x{r['k']:5.0f}  {turned}"
              f"{r['threads']:3.0f} thread(s){r['gflops'][1]:9.1f}{r['share'][1]:8.0%}"
              f"  ({r['share'][0]:.0%}-{r['share'][2]:.0%}) of the {r['against']}")
    rounded = [r for r in rows if r["against"].startswith("float32")]
    least = min(rounded, key=lambda r: r["share"][1])
    print(f"  rounded, target none below 95 %: {verdict(least['share'][1] >= 0.95)} "
          f"(least {least['share'][1]:.0%}: {least['where']}, {least['threads']:.0f} thread(s))")


def show_epilogue(rows):
    print("\nMaps after a product: milliseconds, share of the peak, and what the map costs beyond "
          "itself in the cache, as a part of the product")
    print(f"  {'':62}{'product':>9}{'with map':>10}{'map':>8}{'share':>7}{'beyond':>8}")
    for r in rows:
        size = f"{r['m']:.0f} x {r['n']:.0f} x {r['k']:.0f}"
        low, middle, high = r["beyond"]
        print(f"  {r['where']:20}{size:18}{r['map']:12}{r['threads']:2.0f} thread(s)"
              f"{r['product_ms'][1]:9.3f}{r['ms'][1]:10.3f}{r['map_ms'][1]:8.3f}"
              f"{r['share'][1]:7.0%}{middle:8.1%}  ({low:.1%} to {high:.1%})")
    most, where, what, threads = max((r["beyond"][1], r["where"], r["map"], r["threads"])
                                     for r in rows)
    print(f"  target at most 3 %: {verdict(most <= 0.03)} "
          f"(most {most:.1%}: {where}, {what}, {threads:.0f} thread(s))")


def show_binary(path):
    """What train_decoder weighs: four models, each eager, traced and compiled."""
    sizes = subprocess.run(["size", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    text, data, bss = map(int, sizes.split("\n")[1].split()[:3])
    row = {"program": os.path.basename(path), "code": text, "data": data, "zeros": bss}
    print(f"\nSize of {row['program']}, megabytes: code and constants {text / 1e6:.2f}, "
          f"data {data / 1e6:.2f}")
    return row


SHOW = {"overhead": show_overhead, "specialise": show_specialise, "trips": show_trips,
        "loops": show_loops, "traced": show_traced, "fused": show_fused, "rows": show_rows,
        "parity": show_parity}
# Run once for each number of threads.
SHOW_THREADS = {"gemm": show_gemm, "epilogue": show_epilogue}
# The same, in turn with peers.
TURNS = {"attention": attention, "conv": conv, "products": products, "reading": reading,
         "scanned": scanned, "sequences": sequences}
PARTS = (*compare.CONTESTS, "binary", "build", "capture", "backends", "memory", "models",
         "models_autocast", "replicas", *SHOW, *SHOW_THREADS, *TURNS)


def versions(flags, peers):
    """The compilers that `flags` name, and the peers' packages."""
    found = []
    for path in flags:
        with open(path, encoding="utf-8") as file:
            compiler = file.readline().strip()
        done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
        found.append(done.stdout.split("\n")[0])
    if peers:
        ask = ("from importlib import metadata as m\n"
               "for d in m.distributions():\n"
               f"  if d.metadata['Name'].lower() in {PACKAGES}: print(d.metadata['Name'], d.version)")
        done = subprocess.run([peers, "-c", ask], capture_output=True, text=True, check=True)
        found += sorted(set(done.stdout.split("\n")) - {""})
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", required=True, help="folder of the built programs")
    parser.add_argument("--out", required=True, help="folder of the results")
    parser.add_argument("--parts", nargs="+", required=True, choices=PARTS)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--threads", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--every-round", action="store_true",
                        help="contests count rounds in which the machine was slow, too: for one "
                             "that runs other programs")
    parser.add_argument("--flags", nargs="*", default=[], help="capture.flags of each compiler")
    parser.add_argument("--against", help="another tree of the library, for the part build")
    parser.add_argument("--binary", help="the program of examples/ that is weighed")
    parser.add_argument("--peers", help="a Python that has torch and jax")
    parser.add_argument("--command", help="what the user ran, for results.json")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    here = machine()
    threads = [n for n in options.threads if n <= here["processors"]]
    results = {"machine": here, "versions": versions(options.flags, options.peers),
               "command": options.command or "python3 " + shlex.join(sys.argv), "printed": {}}
    print(f"{here['model']}, {here['processors']} processors, {here['system']}")

    def write(name, content):
        with open(os.path.join(options.out, name), "w", encoding="utf-8") as file:
            file.write(content)

    def run(part):
        if part in compare.CONTESTS:
            results[part] = [compare.hold(part, options.programs, options.peers, n, options.rounds,
                                          options.out, options.every_round) for n in threads]
            for result in results[part]:
                compare.show(result)
            contest = compare.CONTESTS[part]
            write(f"{part}.svg",
                  plot.contest(results[part], contest.title, contest.unit, contest.what))
        elif part == "build":
            results[part] = [build.measure(flags, options.out, options.against, brief=i > 0)
                             for i, flags in enumerate(options.flags)]
            for result in results[part]:
                build.show(result)
        elif part == "capture":
            results[part] = [capture.measure(flags, options.out) for flags in options.flags]
            for result in results[part]:
                capture.show(result)
            write("capture.svg", plot.capture(results[part], capture.beyond, capture.BLOCKS,
                                              capture.LEVELS[0]))
        elif part in TURNS:
            results[part] = []
            for n in threads:
                rows = TURNS[part].measure(options.programs, options.peers, n)
                TURNS[part].show(rows)
                results[part] += rows
            if part == "reading":
                reading.show_threads(results[part])
        elif part == "backends":
            results[part] = backends.measure(options.programs, options.peers, threads,
                                            options.rounds)
            backends.show(results[part])
        elif part == "replicas":
            results[part] = replicas.measure(options.programs, options.peers, options.rounds,
                                             options.out)
            replicas.show(results[part])
        elif part == "memory":
            results[part] = memory.measure(options.programs, options.peers, options.out)
            memory.show(results[part])
            write("memory.svg", memory.plot(results[part]))
        elif part in ("models", "models_autocast"):
            mixed = part == "models_autocast"
            results[part] = models.measure(argparse.Namespace(
                programs=options.programs, out=options.out, peers=options.peers,
                parts=models.MIXED_PARTS if mixed else models.ALL_PARTS,
                models=("resnet50", "vit") if mixed else models.MODELS, threads=threads,
                rounds=min(5, options.rounds), seconds=60, flags=options.flags[0],
                cache=os.path.join(options.out, "inductor")))
            print(models.page(results[part]))
        elif part in SHOW_THREADS:
            results[part] = [r for n in threads for r in records(options.programs, part, str(n))]
            SHOW_THREADS[part](results[part])
        elif part == "binary":
            results[part] = show_binary(options.binary)
        else:
            results[part] = records(options.programs, part)
            SHOW[part](results[part])

    failed = []
    for part in options.parts:
        try:
            with recorded() as lines:
                run(part)
            results["printed"][part] = lines()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            failed.append(part)
            print(f"\n{part}: {error}")
        write("results.json", json.dumps(results, indent=1) + "\n")
    print(f"\nresults.json and plots: {options.out}")
    if failed:
        raise SystemExit(f"these parts failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
