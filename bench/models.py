# SPDX-License-Identifier: Apache-2.0
"""Ten models in inference and training: our modes against each other and against PyTorch's modes.

python3 models.py --programs <folder> --out <folder> --peers <python> [--parts ...] [--models ...]

Results are written after every contest, into models.json and models.md of the folder; another call
adds to them.
"""

import argparse
import concurrent.futures
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

import build
from compare import PAUSE, others_load
from contest import ENVIRONMENT, Program, machine

CONVNET = 1.15


class Model(NamedTuple):
    """What is known of a model before it is measured."""

    title: str
    gflop: float           # forward, one sample
    seed: tuple            # compiled over traced in PyTorch/XLA's tables: inference, training
    target: tuple          # times PyTorch's best: inference of one sample, training
    random: bool = False   # has dropout that stays, so its losses are compared in evaluation


MODELS = {
    "squeezenet1_1": Model("SqueezeNet 1.1", 0.70, (2.29, 1.41), (CONVNET, CONVNET)),
    "resnet18": Model("ResNet-18", 3.63, (2.59, 1.33), (CONVNET, CONVNET)),
    "mobilenet_v2": Model("MobileNet-v2", 0.60, (18.62, 1.40), (1.7, 1.7)),
    "alexnet": Model("AlexNet", 1.43, (1.28, 1.12), (1, 1)),
    "mnasnet1_0": Model("MNASNet 1.0", 0.63, (2.68, 1.19), (1.7, 1.7)),
    "resnet50": Model("ResNet-50", 8.18, (2.64, 1.33), (1.5, 1.3)),
    "resnext50_32x4d": Model("ResNeXt-50 32x4d", 8.46, (1.91, 1.43), (CONVNET, CONVNET)),
    "bert": Model("BERT-base, 128 tokens", 22.35, (7.49, 3.07), (1, 1), True),
    "vgg16": Model("VGG-16", 30.94, (1.33, 0.81), (1.5, 1.5)),
    "vit": Model("ViT-B/16", 35.13, (3.52, 1.87), (1, 1)),
}
# What each part times, and with which of our modes; those of `once` in one turn after the rounds.
PARTS = {"inference": ("reading1", "reading8"), "training": ("training",),
         "batch64": ("reading64",)}
OURS = ("compiled", "traced", "fused", "eager")
# The same in mixed precision, when asked for, with programs of their own.
MIXED = "_autocast"
MIXED_PARTS = {"inference_autocast": ("reading1", "reading8"), "training_autocast": ("training",)}
MIXED_OURS = ("autocast", "compiled")
MIXED_TARGET = {("resnet50", "reading8"): 1.2, ("vit", "reading8"): 1.2}
IN_JAX = ("resnet18", "vit")
# PyTorch's eager mode, in its two memory formats where a model has images, and how many times as
# fast eager mode that fuses has to be.
PYTORCH_EAGER = ("PyTorch eager", "PyTorch channels_last", "PyTorch contiguous")
FUSED_TARGET = 1.1
TIMED = {**PARTS, **MIXED_PARTS}
ALL_PARTS = (*PARTS, "memory", "build")
PARALLEL = 3           # programs at most
ONCE = {"training": ("unsynced", "model", "head"), "reading1": ("unsynced",)}
UNSYNCED = 20          # steps of traced mode that nothing waits for, where they are done in time
TURN, LONG = 0.3, 10   # seconds of a turn, and of the unsynced steps at most
HOPELESS = 1.25        # a peer's way that takes this many times PyTorch's best is left after a round
NATIVE = ("-march=native",)  # of what is linked: the registers of the benchmarks' library
STARTS = 5             # of a program that loads weights, of which the fastest counts
AGREE = {"training": 2e-4, "reading": 1e-3}
MIXED_AGREE = {"training": 1e-2, "reading": 2e-2}
MEGABYTE = 1e6


def median(values):
    return statistics.median(values) if values else float("nan")


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def peer_commands(options, name, threads):
    """(command, environment) of PyTorch's process for a model, and of JAX's where it has one."""
    if not options.peers:
        return []
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
    n = str(threads)
    environment = {
        "OMP_NUM_THREADS": n, "MKL_NUM_THREADS": n, "PYTHONUNBUFFERED": "1",
        "TORCHINDUCTOR_CACHE_DIR": options.cache,
        "LD_PRELOAD": os.path.join(options.programs, "libbench_mkl.so")}
    scripts = ["models_torch.py"] + (["models_jax.py"] if name in IN_JAX else [])
    return [([options.peers, os.path.join(here, script), name, n], dict(environment))
            for script in scripts]


def our_command(options, name, threads, kind="model"):
    return [os.path.join(options.programs, f"bench_{name}_{kind}"), str(threads)]


def start(command, environment=None):
    """A program that may use all processors: what traced mode runs in the background does."""
    return Program(command, len(os.sched_getaffinity(0)), environment)


class Contestant(NamedTuple):
    """A program in one of its modes."""

    program: Program
    label: str   # of the results: "xla compiled"
    way: str     # as the program calls it


class Contest:
    """One task of a model, by all contestants in turn."""

    def __init__(self, what, contestants, agree):
        self.what, self.contestants, self.agree = what, contestants, agree
        self.about = {}       # of each: steps in a turn, untimed ones before
        self.rows = {c.label: [] for c in contestants}  # answers, per step
        self.numbers = {}     # of each: what it computed last when it was prepared
        self.left_out = {}    # of each: why
        self.peaks = []

    def prepare(self, program):
        """Two steps of all of this program's modes: the first fills the caches, the second says how
        long a turn is."""
        for c in [c for c in self.contestants if c.program is program]:
            answer = program.ask(f"run {self.what} {c.way} 1 1")
            if "error" in answer:
                self.left_out[c.label] = answer["error"]
                del self.rows[c.label]
                print(f"  left out: {self.what} {c.label}: {answer['error']}", file=sys.stderr)
                continue
            seconds = answer["ns"] / 1e9
            n = max(1, min(50, round(TURN / seconds)))
            self.about[c.label] = n, 1 if seconds < 1 else 0
            self.numbers[c.label] = answer["loss"]

    def ask(self, c, warm, n):
        time.sleep(PAUSE)
        answer = c.program.ask(f"run {self.what} {c.way} {warm} {n}")
        if "error" in answer:
            raise RuntimeError(f"{c.label}: {answer['error']}")
        return {key: value if key in ("graphs", "loss") else value / n
                for key, value in answer.items()}

    def round(self, number, peak):
        contending = [c for c in self.contestants if c.label in self.about]
        shift = number % len(contending)
        self.peaks.append(peak.ask("run")["gflops"])
        for c in contending[shift:] + contending[:shift]:
            n, warm = self.about[c.label]
            self.rows[c.label].append(self.ask(c, warm, n))
        if number == 0:
            self.leave_hopeless()

    def leave_hopeless(self):
        times = {label: rows[0]["ns"] for label, rows in self.rows.items()
                 if not label.startswith("xla")}
        pytorch = [ns for label, ns in times.items() if label.startswith("PyTorch")]
        for label, ns in times.items():
            if ns > HOPELESS * min(pytorch, default=math.inf):
                del self.about[label]

    def check(self):
        """All must read the same: the sums of the absolute logits."""
        if self.what == "training":
            return
        want = self.numbers["xla compiled"]
        for label, number in self.numbers.items():
            if not abs(number - want) <= self.agree["reading"] * abs(want):
                raise RuntimeError(f"{label} reads {number}, xla compiled {want}")

    def once(self, program):
        """Our modes that are timed in one turn: {way: (answer, steps)}."""
        made = {}
        for way in ONCE.get(self.what, ()):
            seconds = self.rows["xla compiled"][-1]["ns"] / 1e9
            n = max(2, min(UNSYNCED, int(LONG / seconds))) if way == "unsynced" else \
                max(1, min(UNSYNCED, int(1 / seconds)))
            c = Contestant(program, f"xla {way}", way)
            made[way] = {**self.ask(c, 1, n), "steps": n}
        return made


def check_training(name, ours, peers, pool, mixed):
    """All train alike: the losses of three steps on two samples, by program, within a share of the
    first loss. Their gradients are clipped to a norm of 1: with full steps on so few samples
    rounding grows a thousandfold from one loss to the next, in PyTorch's two memory formats as
    well. In autocast, where ours are compared in float32, too, they are in evaluation: through
    the statistics of two samples rounding to bfloat16 grows to a tenth of the loss."""
    how = "evaluation" if mixed or MODELS[name].random else "training"
    words = f"check {how}" + " autocast" * mixed
    asked = {p.about["ready"]: pool.submit(p.ask, words) for p in (ours, *peers)}
    agree = (MIXED_AGREE if mixed else AGREE)["training"]
    losses = {}
    for who, answer in asked.items():
        if "error" in answer.result():
            raise RuntimeError(f"{who}: {answer.result()['error']}")
        losses[who] = answer.result()["losses"]
    if mixed:
        losses["float32"] = ours.ask(f"check {how}")["losses"]
    for who, theirs in losses.items():
        for a, b in zip(losses["xla"], theirs):
            if not abs(a - b) <= agree * losses["xla"][0]:
                raise RuntimeError(f"losses {losses['xla']} here, {theirs} in {who}")
    return losses


def hold(name, part, options, threads):
    """All contests of a part of one model: {what: result}."""
    called = time.time()
    results = {}
    mixed, kind = part.endswith(MIXED), "training" if part.startswith("training") else "reading"
    with contextlib.ExitStack() as programs, \
            concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        def opened(*command):
            program = start(*command)
            programs.callback(program.close)
            return program

        ours = opened(our_command(options, name, threads, "autocast" if mixed else "model"))
        peers = [opened(*command) for command in
                 peer_commands(options, name, threads)[:1 if mixed else None]]
        peak = opened([os.path.join(options.programs, "bench_peak"), str(threads)])
        losses = check_training(name, ours, peers, pool, mixed) if kind == "training" else None
        contests = [
            Contest(what, [Contestant(ours, f"xla {way}", way)
                           for way in (MIXED_OURS if mixed else OURS)]
                    + [Contestant(p, f"{p.about['ready']} {way}", way)
                       for p in peers for way in p.about["ways"][kind + MIXED * mixed]],
                    MIXED_AGREE if mixed else AGREE)
            for what in TIMED[part]]
        # All at the same time: nothing is timed yet but the length of a turn.
        list(pool.map(lambda program: [c.prepare(program) for c in contests], (ours, *peers)))
        prepared = time.time() - called
        load = others_load(1)
        for contest in contests:
            contest.check()
            if not options.rounds:
                continue
            begun = time.time()
            for r in range(options.rounds):
                contest.round(r, peak)
                if r >= 2 and time.time() - begun > options.seconds:
                    break
            results[contest.what + MIXED * mixed] = {
                "rows": contest.rows, "once": {} if mixed else contest.once(ours),
                "peaks": contest.peaks, "left_out": contest.left_out, "losses": losses,
                "others_load": load,
                "seconds": [prepared, time.time() - begun]}
    return results


def weigh(name, options, threads):
    """Memory of a training step: rows of name, state, step, resident."""
    heap = os.path.join(options.programs, "libbench_heap.so")
    commands = [(our_command(options, name, threads), {}),
                *peer_commands(options, name, threads)[:1]]
    rows = []
    for command, environment in commands:
        environment["LD_PRELOAD"] = " ".join(filter(None, (heap, environment.get("LD_PRELOAD"))))
        done = subprocess.run([*command, "memory"], stdout=subprocess.PIPE, text=True, check=True,
                              env={**os.environ, **environment})
        rows.append(json.loads([l for l in done.stdout.split("\n") if l.startswith('{"name"')][-1]))
    return rows


def build_cost(name, options):
    """The cost of a unit that trains the model, and the size of a stripped program that reads. Also
    how long a program runs that loads a file of weights, reads one sample and ends."""
    with open(os.path.join(options.programs, "models.flags"), encoding="utf-8") as file:
        definitions = dict(line.strip().split(" ", 1) for line in file)[name].split(" ")
    with open(options.flags, encoding="utf-8") as file:
        compiler, *flags = [line for line in file.read().split("\n") if line]
    here = os.path.dirname(os.path.abspath(__file__))
    command = [compiler, *flags, "-O2", "-DXLA_EXTERN_RUNTIME", *definitions,
               os.path.join(here, "model_cost.cpp")]
    made = os.path.join(options.out, name)
    row = {}
    for use in ("include", "training", "reading"):
        seconds, megabytes = min(build.compile_once(
            [*command, *(NATIVE if use == "reading" else ()), f"-DCOST_{use.upper()}", "-c", "-o",
             f"{made}.o"])
            for _ in range(build.REPEATS))
        row[use] = {"seconds": seconds, "megabytes": megabytes,
                    "bytes": build.code_bytes(f"{made}.o")}
    link_stripped(compiler, made, options)
    row["stripped"] = os.path.getsize(made)
    subprocess.run([*command, *NATIVE, "-DCOST_START", "-c", "-o", f"{made}.o"], check=True)
    link_stripped(compiler, made, options)
    weights = f"{made}.safetensors"
    subprocess.run([made, weights, "write"], check=True)
    row["start"] = min(seconds_of([made, weights]) for _ in range(STARTS))
    row["file"] = os.path.getsize(weights)
    for file in (made, f"{made}.o", weights):
        os.remove(file)
    return row


def link_stripped(compiler, made, options):
    library = os.path.join(options.programs, os.pardir, "libxla_runtime.a")
    subprocess.run([compiler, f"{made}.o", library, "-pthread", "-ldl", "-s", "-Wl,--gc-sections",
                    "-o", made], check=True)


def seconds_of(command):
    begun = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - begun


def ratios(result, label, ours="xla compiled", key="ns"):
    """Of each round in which both took part."""
    return [a[key] / b[key] for a, b in zip(result["rows"][label], result["rows"][ours])]


def best_peer(result):
    """The fastest of PyTorch's modes by its median."""
    labels = [label for label, rows in result["rows"].items()
              if rows and label.startswith("PyTorch")]
    return min(labels, key=lambda l: median([r["ns"] for r in result["rows"][l]]), default=None)


def milliseconds(result, label):
    return median([r["ns"] for r in result["rows"][label]]) / 1e6


def figure(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def against_peers(timed, what):
    """Our compiled mode against PyTorch's best mode."""
    training = what == "training"
    lines = ["| | xla compiled, ms | share of peak | PyTorch's best, ms | times | target |",
             "|---|---|---|---|---|---|"]
    speeds = []
    for name, result in timed.items():
        model, peer = MODELS[name], best_peer(result)
        gflop = model.gflop * (3 * 8 if training else int(what[len("reading"):]))
        mine = milliseconds(result, "xla compiled")
        share = gflop / (mine / 1e3 * median(result["peaks"]))
        line = f"| {model.title} | {figure(mine)} | {share:.0%} | "
        if peer:
            speed = median(ratios(result, peer))
            speeds.append(speed)
            target = 1 if what == "reading8" else model.target[training]
            way = peer.removeprefix("PyTorch ").replace("_", " ")
            line += f"{figure(milliseconds(result, peer))} ({way}) | " + \
                (f"**{speed:.2f}**" if speed >= target else f"{speed:.2f}") + f" | {target} |"
        lines.append(line)
    if speeds:
        target = "" if what == "reading8" else "1.4"
        lines.append(f"| geometric mean of {len(speeds)} | | | | {geometric_mean(speeds):.2f} | "
                     f"{target} |")
    return lines


def in_autocast(timed, what):
    """Ours in autocast against our float32's, and against PyTorch's best mode in its autocast."""
    lines = ["| | xla autocast, ms | times float32's speed | PyTorch's best in autocast, ms | "
             "times | target |", "|---|---|---|---|---|---|"]
    gains, speeds = [], []
    for name, result in timed.items():
        peer, mine = best_peer(result), "xla autocast"
        gains.append(median(ratios(result, "xla compiled", mine)))
        line = f"| {MODELS[name].title} | {figure(milliseconds(result, mine))} | {gains[-1]:.2f} | "
        if peer:
            speeds.append(median(ratios(result, peer, mine)))
            target = MIXED_TARGET.get((name, what.removesuffix(MIXED)), "")
            way = peer.removeprefix("PyTorch ").removesuffix("+autocast").replace("_", " ")
            line += f"{figure(milliseconds(result, peer))} ({way}) | {speeds[-1]:.2f} | {target} |"
        lines.append(line)
    cells = [f"{geometric_mean(x):.2f}" if x else "" for x in (gains, speeds)]
    return [*lines, f"| geometric mean of {len(gains)} | | {cells[0]} | | {cells[1]} | |"]


def among_modes(timed, what):
    """Traced and eager mode against the compiled one, with PyTorch/XLA's figures."""
    training = what == "training"
    fuses = any("xla fused" in result["rows"] for result in timed.values())
    titles = ["traced, synced each step", "traced, unsynced (steps)", "eager"] + \
        ["eager, fused"] * fuses + ["traced in PyTorch/XLA", "a compiled call saves, us"] + \
        ["compile(model), graphs", "the head alone"] * training
    lines = ["| | " + " | ".join(titles) + " |", "|---|" + "---|" * len(titles)]
    columns = [[] for _ in range(4 + fuses)]
    for name, result in timed.items():
        wall = median([r["wall"] for r in result["rows"]["xla compiled"]])
        once = result["once"]
        saved = min(r["outside"] for r in result["rows"]["xla traced"]) - \
            min(r["outside"] for r in result["rows"]["xla compiled"])
        unsynced = once.get("unsynced")
        values = [median(ratios(result, "xla traced")), unsynced and unsynced["wall"] / wall,
                  median(ratios(result, "xla eager"))]
        if fuses:
            values.append(median(ratios(result, "xla fused")) if "xla fused" in result["rows"] else None)
        values.append(MODELS[name].seed[training])
        for column, value in zip(columns, values):
            column += [value] if value else []
        cells = [f"{v:.2f}" if v else "" for v in values] + [f"{saved / 1e3:.0f}"]
        if unsynced:
            cells[1] += f" ({unsynced['steps']})"
        if training:
            cells.append(f"{once['model']['wall'] / wall:.2f}, {once['model']['graphs']:g}")
            cells.append(f"{once['head']['wall'] / wall:.2f}" if "head" in once else "")
        lines.append(f"| {MODELS[name].title} | " + " | ".join(cells) + " |")
    means = [f"{geometric_mean(c):.2f}" if c else "" for c in columns]
    means += [""] * (len(titles) - len(means))
    lines.append(f"| geometric mean of {len(timed)} | " + " | ".join(means) + " |")
    return lines


def eager_that_fuses(timed):
    """It against strict eager mode, and against PyTorch's eager mode in its faster memory
    format."""
    lines = ["| | xla fused, ms | times strict eager mode's speed | PyTorch's eager mode, ms | "
             "times | target |", "|---|---|---|---|---|---|"]
    gains, speeds = [], []
    for name, result in timed.items():
        if not result["rows"].get("xla fused"):
            continue
        mine = "xla fused"
        gains.append(median(ratios(result, "xla eager", mine)))
        line = f"| {MODELS[name].title} | {figure(milliseconds(result, mine))} | {gains[-1]:.2f} | "
        eager = [l for l in result["rows"] if l in PYTORCH_EAGER and result["rows"][l]]
        if eager:
            peer = min(eager, key=lambda l: milliseconds(result, l))
            speeds.append(median(ratios(result, peer, mine)))
            line += f"{figure(milliseconds(result, peer))} ({peer.split(' ')[1].replace('_', ' ')})"
            bold = "**" if speeds[-1] >= FUSED_TARGET else ""
            line += f" | {bold}{speeds[-1]:.2f}{bold} | {FUSED_TARGET} |"
        lines.append(line)
    if not gains:
        return []
    if speeds:
        lines.append(f"| geometric mean of {len(gains)} | | {geometric_mean(gains):.2f} | | "
                     f"{geometric_mean(speeds):.2f} | |")
    return lines


def all_ways(timed):
    """Every mode's milliseconds; what was left after a round is in brackets."""
    labels = []
    for result in timed.values():
        labels += [l for l in result["rows"] if l not in labels]
    lines = ["| ms | " + " | ".join(labels) + " |", "|---|" + "---|" * len(labels)]
    for name, result in timed.items():
        cells = []
        for label in labels:
            rows = result["rows"].get(label)
            text = figure(milliseconds(result, label)) if rows else ""
            short = rows and len(rows) < len(result["rows"]["xla compiled"])
            cells.append(f"({text})" if short else text)
        lines.append(f"| {MODELS[name].title} | " + " | ".join(cells) + " |")
    return lines


def apart(lines, most=6):
    """A table as several with so many columns after the first, as a page has no room for more."""
    rows = [line.split("|")[1:-1] for line in lines]
    made = []
    for begin in range(1, len(rows[0]), most):
        made += [f"|{'|'.join([row[0], *row[begin:begin + most]])}|" for row in rows] + [""]
    return made


def page(results):
    """All tables as Markdown."""
    machine = results["machine"]
    text = [f"{machine['model']}, {machine['processors']} processors, {machine['date']}", ""]
    titles = {"reading1": "Inference, one sample", "reading8": "Inference, 8 samples",
              "training": "Training step, 8 samples",
              "reading64": "ResNet-18 on 64 images"}
    titles |= {what + MIXED: f"{title}, in autocast" for what, title in titles.items()}
    for threads, parts in results["timed"].items():
        for what in (w for w in titles if w in parts):
            timed = {name: parts[what][name] for name in MODELS if name in parts[what]}
            rounds = [len(r["rows"]["xla compiled"]) for r in timed.values()]
            peaks = [p for r in timed.values() for p in r["peaks"]]
            load = max(r["others_load"] for r in timed.values())
            held = f"{min(rounds)}" + f" to {max(rounds)}" * (max(rounds) > min(rounds))
            text += [f"### {titles[what]}, {threads} thread(s)", "",
                     f"Medians of {held} alternating rounds; peak "
                     f"{median(peaks):.0f} GFLOP/s ({min(peaks):.0f}-{max(peaks):.0f}); others "
                     f"used at most {load:.0%} of the machine.", ""]
            text += [*in_autocast(timed, what), ""] if what.endswith(MIXED) else \
                [*against_peers(timed, what), "", "Times compiled:", "",
                 *apart(among_modes(timed, what))]
            text += ["Every way:", "", *apart(all_ways(timed))]
            if fused := eager_that_fuses(timed):
                text += [f"### Eager mode that fuses: {titles[what]}, {threads} thread(s)", "",
                         *fused, ""]
    weighed = [n for n in MODELS if len(results["memory"].get(n, ())) == 2]
    if weighed:
        text += ["### Memory of a training step, 8 samples, MB", "",
                 "| | state | xla step | PyTorch step | xla resident | PyTorch resident | ratio |",
                 "|---|---|---|---|---|---|---|"]
        for name in weighed:
            rows = results["memory"][name]
            cells = [rows[0]["state"]] + [r[key] for key in ("step", "resident") for r in rows]
            ratio = rows[0]["resident"] / rows[-1]["resident"]
            text.append(f"| {MODELS[name].title} | "
                        + " | ".join(f"{c / MEGABYTE:.0f}" for c in cells) + f" | {ratio:.2f} |")
        text.append("")
    if results["build"]:
        text += ["### Build, -O2, xla::runtime", "",
                 "| | training, s beyond the include | MB | code, KB | a program that reads, "
                 "stripped, MB | one that loads a file and reads once, s | the file, MB |",
                 "|---|---|---|---|---|---|---|"]
        for name in (n for n in MODELS if n in results["build"]):
            row = results["build"][name]
            beyond = row["training"]["seconds"] - row["include"]["seconds"]
            text.append(f"| {MODELS[name].title} | {beyond:.1f} | "
                        f"{row['training']['megabytes']:.0f} | "
                        f"{row['training']['bytes'] / 1e3:.0f} | {row['stripped'] / 1e6:.2f} | "
                        + (f"{row['start']:.3f} | {row['file'] / 1e6:.0f} |" if "start" in row
                           else "| |"))
        text.append("")
    return "\n".join(text)


def measure(options):
    """All parts, one contest after another; results are written after each."""
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, "models.json")
    results = {"timed": {}, "memory": {}, "build": {}}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    results["machine"], results["failed"] = machine(), []
    for part in options.parts:
        for threads in options.threads if part in TIMED else options.threads[:1]:
            for name in ["resnet18"] if part == "batch64" else options.models:
                print(f"{part} {name}, {threads} thread(s)", file=sys.stderr)
                try:
                    if part == "memory":
                        results["memory"][name] = weigh(name, options, threads)
                    elif part == "build":
                        results["build"][name] = build_cost(name, options)
                    else:
                        timed = results["timed"].setdefault(str(threads), {})
                        for what, result in hold(name, part, options, threads).items():
                            timed.setdefault(what, {})[name] = result
                except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                    print(f"  failed: {error}", file=sys.stderr)
                    results["failed"].append(f"{part} {name}, {threads} thread(s): {error}")
                for file_name, content in (("models.json", json.dumps(results, indent=1) + "\n"),
                                           ("models.md", page(results))):
                    with open(os.path.join(options.out, file_name), "w", encoding="utf-8") as file:
                        file.write(content)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help="folder of the built programs")
    parser.add_argument("--out", required=True, help="folder of the results")
    parser.add_argument("--peers", help="a Python that has torch, torchvision, transformers, timm")
    parser.add_argument("--parts", nargs="+", choices=(*ALL_PARTS, *MIXED_PARTS),
                        default=("inference", "training"))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--threads", type=int, nargs="+", default=(1,))
    parser.add_argument("--rounds", type=int, default=5, help="of each contest at most; 0: all is "
                        "only made and compared, which fills torch.compile's cache")
    parser.add_argument("--seconds", type=float, default=60,
                        help="seconds after which a contest ends, if three rounds were held")
    parser.add_argument("--cache", help="of torch.compile, default inductor in the results' folder")
    parser.add_argument("--flags", help="capture.flags, default that of the programs' folder")
    options = parser.parse_args()
    options.cache = options.cache or os.path.join(options.out, "inductor")
    options.flags = options.flags or os.path.join(options.programs, "capture.flags")
    results = measure(options)
    print(page(results))
    if results["failed"]:
        raise SystemExit("failed: " + "; ".join(results["failed"]))


if __name__ == "__main__":
    main()
