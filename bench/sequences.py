# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and loops over single numbers, against PyTorch, JAX and loops by hand."""

import math
import os
import sys
from typing import NamedTuple

from contest import Program, machine

ROUNDS = 3
AGREE = 1e-4


class Size(NamedTuple):
    task: str
    way: str = "training"
    batch: int = 1
    hidden: int = 1

    def words(self):
        return " ".join(map(str, self))

    def __str__(self):
        return f"{self.task} {self.way}" + (f", batch {self.batch}, hidden {self.hidden}"
                                            if self.hidden > 1 else "")


SIZES = (Size("lorenz"), Size("scalars"),
         *(Size(task, way, batch, hidden) for task in ("lstm", "gru", "normed")
           for way in ("reading", "training") for batch in (1, 32) for hidden in (64, 256)),
         Size("speaker", "reading", 1, 256), Size("speaker", "training", 1, 256))
# Times as fast as the best peer: at a batch of one, and of more in reading and training.
TARGET = {"lorenz": 20, "scalars": 20, "speaker": 1.2, "normed": 1.3}
BY_HAND = 1.5  # of Lorenz's equations, times as long as loops by hand at most


def target(size):
    if size.task in TARGET:
        return TARGET[size.task]
    if size.batch == 1:
        return 1.3
    return 0.95 if size.way == "reading" else 1.05


def row(team, size, threads):
    """One task: the least of some rounds of everyone, and of the loops by hand."""
    least, variants = {}, {}
    for number in range(ROUNDS):
        answers = {}
        for name in sorted(team, reverse=number % 2):
            if name == "xla" or name in least or number == 0:
                answers[name] = team[name].ask(f"run {size.words()}")
        if size.task == "lorenz":
            answers["by hand"] = team["xla"].ask(f"run {size._replace(task='hand').words()}")
        for name, answer in answers.items():
            if "error" in answer:
                continue
            ours = answers["xla"]["sum"]
            if not abs(answer["sum"] - ours) <= AGREE * abs(ours):
                raise RuntimeError(f"{size}: {name} has a sum of {answer['sum']}, xla of {ours}")
            if answer["ns"] < least.get(name, math.inf):
                least[name], variants[name] = answer["ns"], answer.get("variant", "")
    ours, by_hand = least.pop("xla"), least.pop("by hand", None)
    best = min(least, key=least.get, default=None)
    return {"what": str(size), "threads": threads, "us": ours / 1e3,
            "by_hand_us": by_hand / 1e3 if by_hand else None,
            "peers_us": {name: ns / 1e3 for name, ns in least.items()},
            "peer": f"{best} ({variants[best]})" if best else None,
            "ratio": least[best] / ours if best else None, "target": target(size)}


def measure(programs, peers, threads, only=""):
    """A row for each task; `only` is a part of its text. peers: a Python that has torch and jax, or
    two of them with a comma between."""
    n = str(threads)
    team = {"xla": Program([os.path.join(programs, "bench_sequences"), n], threads)}
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
    pythons = peers.split(",") if peers else []
    for name, python in zip(("torch", "jax"), (pythons * 2)[:2]):
        environment = {"OMP_NUM_THREADS": n, "MKL_NUM_THREADS": n, "PYTHONUNBUFFERED": "1"}
        if name == "torch":
            environment["LD_PRELOAD"] = os.path.join(programs, "libbench_mkl.so")
        script = os.path.join(folder, f"sequences_{name}.py")
        team[name] = Program([python, script, n], threads, environment)
    rows = []
    for size in SIZES:
        if only in str(size):
            rows.append(row(team, size, threads))
            print(f"  {size}", file=sys.stderr)
    for program in team.values():
        program.close()
    return rows


def show(rows):
    print("\nSequences: microseconds of a call, and speed against the fastest peer")
    for r in rows:
        theirs = ", ".join(f"{name} {us:.0f}" for name, us in r["peers_us"].items())
        hand = f", by hand {r['by_hand_us']:.0f}: {r['us'] / r['by_hand_us']:.2f} times as long" \
            if r["by_hand_us"] else ""
        ratio = f"{r['ratio']:7.2f} x (target {r['target']})  ({theirs}; {r['peer']})" \
            if r["ratio"] else ""
        print(f"  {r['what']:44} {r['threads']} thread(s){r['us']:11.1f} us{ratio}{hand}")
    judged = [r for r in rows if r["ratio"]]
    if judged:
        reached = sum(r["ratio"] >= r["target"] for r in judged)
        least = min(judged, key=lambda r: r["ratio"] / r["target"])
        print(f"  targets reached: {reached} of {len(judged)} (least: {least['what']}, "
              f"{least['ratio']:.2f} of {least['target']})")
    for r in rows:
        if r["by_hand_us"]:
            times = r["us"] / r["by_hand_us"]
            print(f"  target {r['what']} at most {BY_HAND} times as long as loops by hand: "
                  f"{'reached' if times <= BY_HAND else 'missed'} ({times:.2f})")


if __name__ == "__main__":
    # sequences.py <folder of programs> <python with torch and jax, or two: a,b> [<threads>
    # [<part of a task's text>]]
    print(machine()["model"])
    show(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1,
                 only=sys.argv[4] if len(sys.argv) > 4 else ""))
