# SPDX-License-Identifier: Apache-2.0
"""Two processors train one model: one device with both, two devices, two processes, PyTorch's DDP;
and what an exchange takes, against MPI's own."""

import json
import os
import shutil
import subprocess
import time

import ranks
from compare import PAUSE
from contest import ENVIRONMENT, Program, spread

STEPS = {"mlp": 400, "small": 5, "resnet18": 3}
AGREE = 1e-3  # relative difference of the last losses
ALONE, OURS, RANKS = "1 device x 2 threads", "2 devices x 1 thread", "2 ranks x 1 thread"
TARGET = {"mlp": 1.3, "small": 1.3, "resnet18": 1.0}  # times the speed of PyTorch's
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def mpirun(*command):
    """Two processes of it, or nothing where there is no MPI."""
    return [shutil.which("mpirun"), "-n", "2", *command] if shutil.which("mpirun") else []


def contestants(task, programs, peers, cache):
    ours = os.path.join(programs, "bench_replicas")
    yield ALONE, [ours, task, "1"], {}
    yield OURS, [ours, task, "2"], {}
    if mpirun():
        yield RANKS, mpirun(ours, task, "1"), AS_ROOT
    if not peers:
        return
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers", "replicas_torch.py")
    environment = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
                   "LD_PRELOAD": os.path.join(programs, "libbench_mkl.so"),
                   "TORCHINDUCTOR_CACHE_DIR": os.path.join(cache, "inductor")}
    for way in ("eager", "compile"):
        yield f"PyTorch DDP {way}, 2 ranks x 1 thread", [peers, script, way, task], environment


def hold(task, programs, peers, rounds, cache):
    """Nanoseconds of a step of everyone in every round, taken in turn."""
    team = {name: Program(command, 2, environment)
            for name, command, environment in contestants(task, programs, peers, cache)}
    times, losses = {name: [] for name in team}, {}
    for shift in range(rounds):
        names = list(team)
        for name in names[shift % len(names):] + names[:shift % len(names)]:
            time.sleep(PAUSE)
            answer = team[name].ask(f"run {STEPS[task]}")
            times[name].append(answer["ns"] / STEPS[task])
            losses[name] = answer["loss"]
    for program in team.values():
        program.close()
    if task == "resnet18":
        del losses[ALONE]  # a batch norm over all samples gives other numbers than one over half
    for name, loss in losses.items():
        if abs(loss - losses[OURS]) > AGREE * abs(losses[OURS]):
            raise RuntimeError(f"{task}: {name} ends at loss {loss}, {OURS} at {losses[OURS]}")
    return [{"task": task, "name": name, "ns": spread(t), "least": min(t)}
            for name, t in times.items()]


def exchanges(programs):
    """Microseconds of an all_reduce of some floats, by threads and by processes."""
    program = os.path.join(programs, "bench_exchange")
    for command in ([program, "2"], mpirun(program)):
        if not command:
            continue
        lines = subprocess.run(command, check=True, capture_output=True, text=True,
                               env={**os.environ, **ENVIRONMENT, **AS_ROOT}).stdout.splitlines()
        yield from (json.loads(line) for line in lines if line.startswith("{"))


def hidden(programs):
    """Of every task and way: what a step exchanges, microseconds that this takes alone, and that the
    step waits for it."""
    ours = os.path.join(programs, "bench_replicas")
    for task in STEPS:
        for name, command in ((OURS, [ours, task, "2", "hidden"]),
                              (RANKS, mpirun(ours, task, "1", "hidden"))):
            if not command:
                continue
            lines = subprocess.run(command, check=True, capture_output=True, text=True,
                                   env={**os.environ, **ENVIRONMENT, **AS_ROOT}).stdout.splitlines()
            for row in (json.loads(line) for line in lines if line.startswith("{")):
                yield {**row, "name": name,
                       "hidden": max(0.0, 1 - row["waited_us"] / row["alone_us"])}


def model_of(programs, steps, shares):
    points = ranks.measure(programs)
    if not points:
        return {}
    fitted = ranks.fit(points, len(os.sched_getaffinity(0)))
    of_ranks = {r["task"]: r for r in shares if r["name"] == RANKS}
    compute = {r["task"]: r["ns"][1] * 1e-9 - of_ranks[r["task"]]["waited_us"] * 1e-6
               for r in steps if r["name"] == RANKS}
    return {"points": points, "fitted": fitted, "stated": ranks.state(fitted, compute, of_ranks)}


def measure(programs, peers, rounds, cache):
    rows = [row for task in STEPS for row in hold(task, programs, peers, rounds, cache)]
    shares = list(hidden(programs))
    return {"steps": rows, "exchanges": list(exchanges(programs)), "hidden": shares,
            "model": model_of(programs, rows, shares)}


def show(results):
    rows = results["steps"]
    print("\nTwo processors train one model: milliseconds of a step on two batches")
    print(f"  {'':10}{'':38}{'p10':>9}{'median':>9}{'p90':>9}{'speed':>7}")
    for r in rows:
        ours = next(o for o in rows if o["task"] == r["task"] and o["name"] == OURS)
        low, middle, high = (t / 1e6 for t in r["ns"])
        print(f"  {r['task']:10}{r['name']:38}{low:9.3f}{middle:9.3f}{high:9.3f}"
              f"{ours['ns'][1] / r['ns'][1]:7.2f}")
    for task, target in TARGET.items():
        peers = [r["ns"][1] for r in rows if r["task"] == task and "PyTorch" in r["name"]]
        if peers:
            ours = next(r["ns"][1] for r in rows if r["task"] == task and r["name"] == OURS)
            speed = min(peers) / ours
            print(f"  {task}: {speed:.2f} times PyTorch's speed, target {target}: "
                  f"{'reached' if speed >= target else 'missed'}")
    print("\nMicroseconds of an all_reduce of two replicas")
    for r in results["exchanges"]:
        reference = f", MPI_Allreduce {r['mpi_us']:.2f}" if "mpi_us" in r else ""
        print(f"  {r['floats']:9} floats, {'processes' if reference else 'threads'}: {r['us']:.2f}{reference}")
    print("\nThe exchange of a step's gradients: what it takes alone, and how long the step waits for it")
    for r in results["hidden"]:
        print(f"  {r['task']:10}{r['name']:22}{r['floats']:9} floats{r['alone_us']:12.1f} us alone"
              f"{r['waited_us']:12.1f} waited for: {r['hidden']:.0%} hidden")
    if results["model"]:
        ranks.show(results["model"]["fitted"], results["model"]["stated"])
