# SPDX-License-Identifier: Apache-2.0
"""The memory that a training step of the decoder `small` needs, each contestant by itself."""

import json
import os
import subprocess
import sys

from compare import CONTESTS, contestants
from plot import bars

MEGABYTE = 1e6
THREADS = 2


def measure(programs, peers, cache):
    """Records of name, state (parameters and moments) and step (all else at its peak), in bytes."""
    rows = []
    heap = os.path.join(programs, "libbench_heap.so")
    for command, environment in contestants(CONTESTS["decoder"], programs, peers, THREADS, cache):
        if "BENCH_INSTALLED" in environment:
            continue
        environment["LD_PRELOAD"] = " ".join(filter(None, (heap, environment.get("LD_PRELOAD"))))
        done = subprocess.run([*command, "memory"], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, **environment}, check=False)
        answers = [line for line in done.stdout.split("\n") if line.startswith('{"name"')]
        if done.returncode != 0 or not answers:
            print(f"  left out: {' '.join(command[-4:])}", file=sys.stderr)
            continue
        rows.append(json.loads(answers[-1]))
    return rows


def show(rows):
    print("\nMemory of a training step, decoder small, 4 x 128 tokens, AdamW: megabytes")
    print(f"  {'':16}{'state':>10}{'step':>10}   state: parameters and two moments; "
          "step: gradients, activations, temporaries at their peak")
    for r in rows:
        print(f"  {r['name']:16}{r['state'] / MEGABYTE:10.1f}{r['step'] / MEGABYTE:10.1f}")


def plot(rows):
    return bars("Decoder small: megabytes of a training step beside parameters and moments",
                [(r["name"], r["step"] / MEGABYTE) for r in rows])
