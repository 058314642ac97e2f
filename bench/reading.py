# SPDX-License-Identifier: Apache-2.0
"""How fast networks read, against onnxruntime, OpenVINO, ncnn and PyTorch's best way."""

import argparse
import concurrent.futures
import contextlib
import os
import subprocess
import sys

import models
from contest import machine

ROUNDS = 3
AGREE = 1e-4          # of the sums of absolute results
TARGET, LEAST = 1.2, 1.0  # geometric mean of a column against the best peer; each row
# How many times as fast one sample is to be on two threads as on one.
SECOND = {"resnet50": 1.75, "resnext50_32x4d": 1.75, "vit": 1.75,
          "mobilenet_v2": 1.5, "mnasnet1_0": 1.5}
MORE = (3, 4)  # numbers of threads that are estimated
RUNTIMES = ("onnxruntime", "openvino", "ncnn")
TASKS = ("reading1", "reading8")
# Besides the ten models; the tasks of reading.hpp.
NETS = {"pnet": "P-Net, 224 x 224", "crepe_tiny": "CREPE tiny", "crepe_full": "CREPE full",
        "minilm_10": "MiniLM, 10 tokens", "minilm_46": "MiniLM, 46 tokens",
        "minilm_128": "MiniLM, 128 tokens"}
TITLES = {**{name: model.title for name, model in models.MODELS.items()}, **NETS}


def commands(programs, peers, name, threads):
    """(command, environment) of our program and of every peer's."""
    kind = "read" if name in NETS else "model"
    yield [os.path.join(programs, f"bench_{name}_{kind}"), str(threads)], {}
    if not peers:
        return
    folder = os.path.join(programs, "converted")
    options = argparse.Namespace(programs=programs, peers=peers,
                                 cache=os.path.join(folder, "inductor"))
    yield models.peer_commands(options, name, threads)[0]
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers/reading_runtimes.py")
    for runtime in RUNTIMES:
        yield ([peers, script, runtime, name, str(threads), folder],
               {"OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"})


def hold(programs, peers, name, threads):
    """A row for each task: milliseconds of every contestant in its best way."""
    with contextlib.ExitStack() as opened, \
            concurrent.futures.ThreadPoolExecutor(models.PARALLEL) as pool:
        team = []
        for command, environment in commands(programs, peers, name, threads):
            team.append(models.start(command, environment))
            opened.callback(team[-1].close)
        peak = models.start([os.path.join(programs, "bench_peak"), str(threads)])
        opened.callback(peak.close)
        contests = [
            models.Contest(what, [models.Contestant(team[0], "xla compiled", "compiled")] +
                           [models.Contestant(p, f"{p.about['ready']} {way}", way)
                            for p in team[1:] for way in p.about["ways"]["reading"]],
                           {"reading": AGREE})
            for what in TASKS]
        list(pool.map(lambda program: [c.prepare(program) for c in contests], team))
        for contest in contests:
            leave_wrong(contest)
            for r in range(ROUNDS):
                contest.round(r, peak)
    return [row(name, threads, contest) for contest in contests]


def leave_wrong(contest):
    """Leaves out, with the reason, who reads something else than ours."""
    ours = contest.numbers["xla compiled"]
    for label, number in contest.numbers.items():
        if not abs(number - ours) <= AGREE * abs(ours):
            contest.left_out[label] = f"reads {number}, xla {ours}"
            print(f"  left out: {contest.what} {label}: {contest.left_out[label]}", file=sys.stderr)
            del contest.about[label], contest.rows[label]


def row(name, threads, contest):
    result = {"rows": contest.rows}
    best = {}
    for label, answers in contest.rows.items():
        who = label.split(" ")[0]
        if answers and (who not in best or
                        models.milliseconds(result, label) < best[who]["ms"]):
            best[who] = {"ms": models.milliseconds(result, label), "way": label,
                         "times": models.median(models.ratios(result, label))}
    return {"name": name, "what": contest.what, "threads": threads, "best": best,
            "left_out": contest.left_out, "peak": models.median(contest.peaks)}


def measure(programs, peers, threads, only=""):
    """Rows of all networks; `only` is a part of a name."""
    rows = []
    for name in TITLES:
        if only not in name:
            continue
        print(f"reading {name}, {threads} thread(s)", file=sys.stderr)
        try:
            rows += hold(programs, peers, name, threads)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"  failed: {error}", file=sys.stderr)
            rows.append({"name": name, "threads": threads, "failed": str(error)})
    return rows


def show(rows):
    """A table of milliseconds for each task; in bold, what the best peer takes times ours."""
    for failed in (r for r in rows if "failed" in r):
        print(f"\nfailed: {TITLES[failed['name']]}, {failed['threads']} thread(s): "
              f"{failed['failed']}")
    for what, samples in zip(TASKS, ("one sample", "8 samples")):
        held = [r for r in rows if r.get("what") == what]
        if not held:
            continue
        peers = list(dict.fromkeys(who for r in held for who in r["best"] if who != "xla"))
        print(f"\n### Reading {samples}, {held[0]['threads']} thread(s)\n")
        print("| ms | xla compiled | " + " | ".join(peers) + " | the best peer takes, times ours |")
        print("|---|---|" + "---|" * len(peers) + "---|")
        speeds = []
        for r in held:
            cells = [models.figure(r["best"]["xla"]["ms"])]
            cells += [models.figure(r["best"][who]["ms"]) if who in r["best"] else "–"
                      for who in peers]
            speed = min((r["best"][who]["times"] for who in peers if who in r["best"]),
                        default=None)
            if speed:
                speeds.append(speed)
                cells.append(f"**{speed:.2f}**" if speed >= LEAST else f"{speed:.2f}")
            print(f"| {TITLES[r['name']]} | " + " | ".join(cells) + " |")
        if speeds:
            mean = models.geometric_mean(speeds)
            slower = sum(speed < LEAST for speed in speeds)
            print(f"\nGeometric mean {mean:.2f} (target {TARGET}: "
                  f"{'reached' if mean >= TARGET else 'missed'}); {slower} of {len(speeds)} rows "
                  f"below {LEAST} (target none: {'missed' if slower else 'reached'}); "
                  f"peak {models.median([r['peak'] for r in held]):.0f} GFLOP/s.")


def show_threads(rows):
    """What a second thread gains for one sample, and what more threads would gain by Amdahl's
    law: the time is that of a part that one thread does, and of a part that all share."""
    held = {(r["name"], r["threads"]): r["best"] for r in rows if r.get("what") == TASKS[0]}
    names = [name for name in TITLES if {(name, 1), (name, 2)} <= held.keys()]
    if not names:
        return
    print("\n### What a second thread gains, one sample\n")
    print("| | time on 1 over time on 2 | target | a peer's, at most | shared part | " +
          " | ".join(f"on {n}, estimated" for n in MORE) + " |")
    print("|---|---|---|---|---|" + "---|" * len(MORE))
    missed = 0
    for name in names:
        one, two = held[name, 1], held[name, 2]
        gain = one["xla"]["ms"] / two["xla"]["ms"]
        peer = max((one[who]["ms"] / two[who]["ms"] for who in one if who in two and who != "xla"),
                   default=None)
        shared = min(2 - 2 / gain, 1)
        target = SECOND.get(name)
        missed += target is not None and gain < target
        cells = [f"{gain:.2f}", str(target or "–"), f"{peer:.2f}" if peer else "–",
                 f"{shared:.0%}"] + [f"{1 / (1 - shared + shared / n):.2f}" for n in MORE]
        print(f"| {TITLES[name]} | " + " | ".join(cells) + " |")
    print(f"\n{missed} targets missed." if missed else "\nAll targets reached.")


if __name__ == "__main__":
    # reading.py <folder of programs> <python with the peers> [<threads> [<part of a name>]]
    print(machine()["model"])
    show(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1,
                 only=sys.argv[4] if len(sys.argv) > 4 else ""))
