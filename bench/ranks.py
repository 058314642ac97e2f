# SPDX-License-Identifier: Apache-2.0
"""A model of what an exchange costs by the number of processes: fitted to all_reduces of 2 to 8 of
them on the processors of this machine, stated for as many as a cluster has."""

import json
import math
import os
import shutil
import subprocess

from contest import ENVIRONMENT

FITTED = (2, 3, 4, 6, 8)
STATED = (2, 8, 64, 1000)
UNDER_WAY = 4  # chunks
BUCKET = 25 << 20  # bytes, as XLA_BUCKET_MB has it unless told
NETWORK = {"latency": 2e-6, "bytes_per_second": 10e9}  # supposed, not measured
BACKWARD = 2 / 3  # of a step, in which exchanges can hide


def traffic(ranks, size):
    """Messages that a process sends in an all_reduce of this many bytes, the bytes that it gets, and
    how often it waits; see ext/mpi_transport.hpp and ext/mpi_reduction.hpp."""
    pairs = ranks <= 8
    told = ranks - 1 if pairs else math.ceil(math.log2(ranks))
    ways = 1 if pairs else told
    if size <= (3968 if pairs else 448 if ranks <= 64 else 0):
        return told, (ranks - 1) * (64 + size), ways
    if ranks == 2:
        chunks = math.ceil(size / (4032 if size <= 4 * 4032 else 128 << 10))
        return told + chunks, size, ways + math.ceil(chunks / UNDER_WAY)
    chunks = math.ceil(size / max(128 << 10, min(ranks * (16 << 10), 8 << 20)))
    return (told + chunks * 2 * (ranks - 1), 2 * size * (ranks - 1) / ranks,
            ways + 2 * math.ceil(chunks / UNDER_WAY))


def measure(programs):
    """Rows of (processes, floats, seconds); none where there is no MPI."""
    if not shutil.which("mpirun"):
        return []
    rows = []
    environment = {**os.environ, **ENVIRONMENT, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    for ranks in FITTED:
        command = ["mpirun", "-n", str(ranks), os.path.join(programs, "bench_exchange"), "brief"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300,
                               env=environment).stdout.splitlines()
        rows += [{"ranks": ranks, "floats": row["floats"], "us": row["us"]}
                 for row in (json.loads(line) for line in lines if line.startswith("{"))]
    return rows


def solve(rows):
    """The x of linear equations: rows of their factors and right sides."""
    rows = [list(row) for row in rows]
    for i in range(len(rows)):
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for k in range(len(rows)):
            if k != i:
                rows[k] = [v - rows[k][i] * w for v, w in zip(rows[k], rows[i])]
    return [row[-1] for row in rows]


def fit(rows, processors):
    """Seconds of a processor that a message takes, and a byte, and that another process is woken
    where several share a processor: least squares of relative errors."""
    costs = []
    for row in rows:
        messages, size, ways = traffic(row["ranks"], 4 * row["floats"])
        turns = row["ranks"] / processors
        costs.append((messages * max(1, turns), size * max(1, turns),
                      ways * turns if turns > 1 else 0))
    terms = range(3 if any(c[2] for c in costs) else 2)  # of a turn only where they share
    times = [row["us"] * 1e-6 for row in rows]
    weights = [1 / t for t in times]
    for _ in range(20):  # until too much weighs as too little does
        sums = [[sum(w * w * c[i] * c[k] for c, w in zip(costs, weights)) for k in terms]
                + [sum(w * w * c[i] * t for c, w, t in zip(costs, weights, times))]
                for i in terms]
        found = solve(sums)
        modelled = [sum(v * f for v, f in zip(c, found)) for c in costs]
        weights = [1 / math.sqrt(t * max(m, t / 10)) for m, t in zip(modelled, times)]
    errors = sorted(max(m / t, t / max(m, 1e-12)) - 1 for m, t in zip(modelled, times))
    message, byte, turn = (*found, 0.0)[:3]
    return {"message": message, "byte": byte, "turn": turn,
            "error": errors[len(errors) // 2], "worst": errors[-1]}


def exchange(model, ranks, size):
    """Seconds of a step's exchange of gradients between processes with a processor each."""
    total = 0.0
    for begin in range(0, size, BUCKET):
        messages, moved, ways = traffic(ranks, min(BUCKET, size - begin))
        total += (model["message"] * messages + ways * NETWORK["latency"]
                  + max(model["byte"], 1 / NETWORK["bytes_per_second"]) * moved)
    return total


def state(model, compute, exchanged):
    """Rows of what a step takes by the number of processes: of each task its seconds of computing,
    the floats that it exchanges, and the share of that which two processes hide."""
    rows = []
    for task, seconds in compute.items():
        for ranks in STATED:
            whole = exchange(model, ranks, 4 * exchanged[task]["floats"])
            waits = max(whole * (1 - exchanged[task]["hidden"]), whole - BACKWARD * seconds)
            rows.append({"task": task, "ranks": ranks, "exchange": whole, "waits": waits,
                         "efficiency": seconds / (seconds + waits)})
    return rows


def show(model, rows):
    print("\nA MODEL of many processes, not a measurement: fitted to all_reduces of "
          f"{FITTED[0]} to {FITTED[-1]} processes on this machine's processors,")
    print(f"  {model['message'] * 1e6:.2f} us of a processor a message, "
          f"{1e-9 / model['byte']:.2f} GB/s moved and summed, "
          f"{model['turn'] * 1e6:.1f} us for another process's turn "
          f"(half of the points within {model['error']:.0%}, all within {model['worst']:.0%});")
    print(f"  supposed: a processor for each, a network of {NETWORK['latency'] * 1e6:g} us and "
          f"{NETWORK['bytes_per_second'] / 1e9:g} GB/s, exchanges hidden in at most "
          f"{BACKWARD:.0%} of a step, all replicas equally quick")
    print(f"  {'':10}{'processes':>10}{'exchange, ms':>14}{'waited for':>12}{'efficiency':>12}")
    for r in rows:
        print(f"  {r['task']:10}{r['ranks']:10}{r['exchange'] * 1e3:14.3f}{r['waits'] * 1e3:12.3f}"
              f"{r['efficiency']:12.1%}")
