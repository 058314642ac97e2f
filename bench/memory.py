# SPDX-License-Identifier: Apache-2.0
"""The memory that a training step needs, each contestant by itself."""

import json
import os
import subprocess
import sys

from compare import CONTESTS, contestants
from plot import bars

MEGABYTE = 1e6
THREADS = 2
STEPS = {"decoder": "decoder small, 4 x 128 tokens, AdamW", "resnet18": "ResNet-18, batch 8, SGD"}


def measure(programs, peers, cache):
    """Records of contest, name, state (parameters and moments), step (all else at its peak), and
    what is resident at most, less what loading took, in bytes."""
    rows = []
    heap = os.path.join(programs, "libbench_heap.so")
    for contest in STEPS:
        for command, environment in contestants(CONTESTS[contest], programs, peers, THREADS, cache):
            if "BENCH_INSTALLED" in environment:
                continue
            environment["LD_PRELOAD"] = " ".join(filter(None, (heap, environment.get("LD_PRELOAD"))))
            done = subprocess.run([*command, "memory"], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, **environment}, check=False)
            answers = [line for line in done.stdout.split("\n") if line.startswith('{"name"')]
            if done.returncode != 0 or not answers:
                print(f"  left out: {' '.join(command[-4:])}", file=sys.stderr)
                continue
            rows.append({"contest": contest, **json.loads(answers[-1])})
    return rows


def show(rows):
    for contest, what in STEPS.items():
        print(f"\nMemory of a training step, {what}: megabytes")
        print(f"  {'':16}{'state':>10}{'step':>10}{'resident':>10}   state: parameters and moments; "
              "step: gradients, activations, temporaries at their peak; resident: the most of all "
              "that, less what loading took")
        for r in rows:
            if r["contest"] == contest:
                print(f"  {r['name']:16}" + "".join(f"{r[key] / MEGABYTE:10.1f}"
                                                    for key in ("state", "step", "resident")))


def plot(rows):
    return bars("Decoder small: megabytes of a training step without parameters and moments",
                [(r["name"], r["step"] / MEGABYTE) for r in rows if r["contest"] == "decoder"])
