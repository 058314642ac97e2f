# SPDX-License-Identifier: Apache-2.0
"""What building costs a user: translation units with the run time in them and in a library, at three levels."""

import glob
import os
import subprocess
import sys

LEVELS = {"-O0": ["-O0"], "-O2": ["-O2"], "-O3 native": ["-O3", "-march=native"]}
FORMS = {"headers alone": [], "xla::runtime": ["-DXLA_EXTERN_RUNTIME"]}
PROGRAMS = {  # source below the tree that is measured first, flags, levels
    "include": ("empty.cpp", [], LEVELS),
    "MLP, eager step": ("tests/cost/mlp.cpp", ["-DEAGER"], LEVELS),
    "MLP, compiled step": ("tests/cost/mlp.cpp", [], LEVELS),
    "64 blocks, compiled": ("bench/capture.cpp", ["-DMODE=2", "-DBLOCKS=64"], ["-O2"]),
    "decoder, 24 layers, compiled": ("bench/capture_decoder.cpp", ["-DLAYERS=24"], ["-O2"]),
}
REPEATS = 2  # the faster counts
LIMITS = {  # (program, form, level): most times the build of the tree it is measured against
    ("MLP, compiled step", "xla::runtime", "-O2"): 0.36,
    ("MLP, compiled step", "xla::runtime", "-O3 native"): 0.42,
    ("MLP, compiled step", "xla::runtime", "-O0"): 0.43,
    ("MLP, compiled step", "headers alone", "-O2"): 0.85,
    ("MLP, compiled step", "headers alone", "-O0"): 0.85,
    ("64 blocks, compiled", "xla::runtime", "-O2"): 0.5,
    ("64 blocks, compiled", "headers alone", "-O2"): 0.85,
    ("decoder, 24 layers, compiled", "xla::runtime", "-O2"): 0.6,
    ("decoder, 24 layers, compiled", "headers alone", "-O2"): 0.85,
}


def compile_once(command):
    """(user seconds, megabytes of the largest process)."""
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"this does not compile: {' '.join(command)}")
    return usage.ru_utime, usage.ru_maxrss / 1024


def code_bytes(made):
    """`text` of size: code and constants."""
    lines = subprocess.run(["size", made], capture_output=True, text=True, check=True).stdout
    return int(lines.split("\n")[1].split()[0])


def in_tree(flags, tree, root):
    return [f.replace(root, tree) if f.startswith("-I" + root) else f for f in flags]


def measure(flags_file, out, against=None, brief=False):
    """Every program of this tree, in turns with that of another one where one is given; brief: -O2
    alone, and no large nets."""
    with open(flags_file, encoding="utf-8") as file:
        compiler, *flags = [line for line in file.read().split("\n") if line]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    trees = {"here": root} | ({"there": os.path.abspath(against)} if against else {})
    made = os.path.join(out, "build.o")
    empty = os.path.join(out, "empty.cpp")
    with open(empty, "w", encoding="utf-8") as file:
        file.write("#include <xla/xla.hpp>\nint main() {}\n")
    rows = []
    for program, (source, more, levels) in PROGRAMS.items():
        if brief and levels is not LEVELS:
            continue
        for form, definitions in FORMS.items():
            for level in ["-O2"] if brief else levels:
                row = {"program": program, "form": form, "level": level}
                for _ in range(REPEATS):
                    for name, tree in trees.items():
                        path = empty if source == "empty.cpp" else os.path.join(root, source)
                        command = [compiler, *in_tree(flags, tree, root), *LEVELS[level],
                                   *definitions, *more, "-c", path, "-o", made]
                        seconds, memory = compile_once(command)
                        old = row.get(name, {"seconds": seconds})
                        row[name] = {"seconds": min(seconds, old["seconds"]),
                                     "megabytes": memory, "bytes": code_bytes(made)}
                rows.append(row)
                print(f"  {line(row)}", file=sys.stderr)
    eigen = os.path.join(out, "eigen.cpp")
    with open(eigen, "w", encoding="utf-8") as file:
        file.write("#include <Eigen/Core>\nint main() {}\n")
    core = min(compile_once([compiler, *flags, "-O2", "-c", eigen, "-o", made])[0]
               for _ in range(REPEATS))
    sources = sorted(glob.glob(os.path.join(root, "cmake", "runtime", "*.cpp")))
    library = {}
    for path in sources:
        seconds, memory = compile_once([compiler, *flags, "-O2", "-DXLA_EXTERN_RUNTIME", "-c", path,
                                        "-o", made])
        library[os.path.basename(path)] = {"seconds": seconds, "megabytes": memory,
                                           "bytes": code_bytes(made)}
    for file in (made, empty, eigen):
        os.remove(file)
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True,
                             check=True).stdout.split("\n")[0]
    return {"compiler": version, "rows": rows, "library": library, "eigen": core}


def line(row):
    here = row["here"]
    text = (f"{row['program']:30}{row['form']:15}{row['level']:12}{here['seconds']:7.2f} s"
            f"{here['megabytes']:6.0f} MB{here['bytes'] / 1000:7.0f} KB")
    if "there" in row:
        ratio = here["seconds"] / row["there"]["seconds"]
        text += f"{ratio:8.2f} of {row['there']['seconds']:.2f} s"
        limit = LIMITS.get((row["program"], row["form"], row["level"]))
        if limit:
            text += f", target at most {limit}: {'reached' if ratio <= limit else 'missed'}"
    return text


def show(result):
    print(f"\nBuild: user seconds of one translation unit, the faster of {REPEATS} "
          f"({result['compiler']})")
    for row in result["rows"]:
        print(f"  {line(row)}")
    include = {r["form"]: r["here"]["seconds"] for r in result["rows"]
               if r["program"] == "include" and r["level"] == "-O2"}
    for form, seconds in include.items():
        print(f"  xla.hpp, {form}: {seconds / result['eigen']:.2f} times Eigen/Core "
              f"({result['eigen']:.2f} s), target at most 1.5")
    all_ = result["library"].values()
    print(f"  xla::runtime itself, once for a project, -O2: {sum(x['seconds'] for x in all_):.1f} s "
          f"on one core in {len(all_)} sources (target 30), {max(x['megabytes'] for x in all_):.0f} "
          f"MB at most, {sum(x['bytes'] for x in all_) / 1000:.0f} KB, of which a program links what "
          "it uses")
