# SPDX-License-Identifier: Apache-2.0
"""XLA as the backend: the same steps by a plugin of XLA, by the library's own plans, and in JAX; what a
call costs against PJRT calls written by hand; compiling, and loading from disk.

A part alone, or on a GPU, where PyTorch and torch.compile contend as well:
    python3 backends.py <programs> <python> [--tasks decoder ...] [--device CUDA] [--threads 1 2]
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from typing import NamedTuple

from contest import ENVIRONMENT, Program, spread

PAUSE = 0.05
JAX = 1.05      # times JAX's jit: the target, at most
OF_BEST = 0.95  # of the speed of the better peer: the target on a GPU, at least
BY_HAND = 1.3   # times the loop by hand
FROM_DISK = 15  # milliseconds
BACKEND, PLAN, TORCH = "xla, the plugin", "xla, own plan", "torch.compile"
WAYS = {BACKEND: "compiled", PLAN: "compiled", "JAX jit": "jit", TORCH: "compile"}


class Task(NamedTuple):
    """Ours and JAX's program of the same step, and how many steps a turn has."""

    title: str
    ours: tuple     # of the folder of programs: {} is the number of threads
    jax: tuple
    steps: int
    torch: tuple = ()
    agree: float = 1e-3
    unit: str = "ms"
    run: str = "run"  # or of the programs of bench/models.py, whose steps go on from the last turn's


def call(n):
    return Task(f"three ops, {n} parameters", ("bench_backends", str(n), "{}"),
                ("backends_jax.py", str(n), "{}"), 2000 if n < 100 else 500, unit="us")


TASKS = {
    "call4": call(4), "call64": call(64), "call256": call(256),
    "mlp": Task("MLP, batch 64", ("bench_mlp_backend", "compiled", "{}"), ("mlp_jax.py", "{}"), 400,
                ("mlp_torch.py", "compile", "{}"), unit="us"),
    "decoder_char": Task("decoder char", ("bench_decoder_char_backend", "compiled", "{}"),
                         ("decoder_jax.py", "{}", "char"), 20,
                         ("decoder_torch.py", "compile", "{}", "char")),
    "decoder": Task("decoder small", ("bench_decoder_backend", "compiled", "{}"),
                    ("decoder_jax.py", "{}", "small"), 5,
                    ("decoder_torch.py", "compile", "{}", "small")),
    "resnet18": Task("ResNet-18, batch 8", ("bench_resnet18_backend", "compiled", "{}"),
                     ("backends_jax.py", "resnet18", "{}"), 2),
    # Of GPUs: bench_backend_models builds ours. BERT's dropout is everybody's own.
    "resnet50": Task("ResNet-50, batch 8", ("bench_resnet50_backend", "{}"),
                     ("models_jax.py", "resnet50", "{}"), 5,
                     ("models_torch.py", "resnet50", "{}"), run="run training {} 2"),
    "bert": Task("BERT-base, 8 x 128", ("bench_bert_backend", "{}"), ("models_jax.py", "bert", "{}"), 5,
                 ("models_torch.py", "bert", "{}"), agree=float("inf"), run="run training {} 2"),
}
ON_CPU = tuple(name for name, task in TASKS.items() if task.run == "run")
ON_GPU = ("decoder", "resnet50", "bert")


def contestants(task, programs, peers, threads, device):
    """(name, command, environment); the first is ours."""
    def filled(words):
        return [w.format(threads) for w in words]

    ours = filled(task.ours)
    ours[0] = os.path.join(programs, ours[0])
    wall = {"BENCH_CLOCK": "wall"}  # as JAX's programs have it
    yield BACKEND, ours, {"PJRT_DEVICE": device, **wall}
    if device == "CPU":
        yield PLAN, ours, {"XLA_BACKEND": "native", **wall}
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
    environment = {"BENCH_DEVICE": device.lower(), "OMP_NUM_THREADS": str(threads),
                   "PYTHONUNBUFFERED": "1", "XLA_FLAGS": ""}
    script, *arguments = filled(task.jax)
    yield "JAX jit", [peers, os.path.join(here, script), *arguments], environment
    if device != "CPU" and task.torch:
        script, *arguments = filled(task.torch)
        yield TORCH, [peers, os.path.join(here, script), *arguments], environment


def hold(name, programs, peers, threads, rounds, device="CPU"):
    """Nanoseconds of a step of everyone in every round, taken in turn."""
    task = TASKS[name]
    team = {who: Program(command, threads, environment) for who, command, environment
            in contestants(task, programs, peers, threads, device)}
    times, losses = {who: [] for who in team}, {}
    for shift in range(rounds):
        names = list(team)
        for who in names[shift % len(names):] + names[:shift % len(names)]:
            time.sleep(PAUSE)
            answer = team[who].ask(f"{task.run.format(WAYS[who])} {task.steps}")
            times[who].append(answer["ns"] / task.steps)
            losses[who] = answer["loss"]
    for program in team.values():
        program.close()
    for who, loss in losses.items() if task.agree < 1 else ():
        if not abs(loss - losses[BACKEND]) <= task.agree * abs(losses[BACKEND]):
            raise RuntimeError(f"{name}: {who} ends at {loss}, {BACKEND} at {losses[BACKEND]}")
    ours = times[BACKEND]
    return [{"task": name, "threads": threads, "name": who, "ns": spread(t), "least": min(t),
             "ratio": spread([a / b for a, b in zip(t, ours)]), "least_ratio": min(t) / min(ours),
             "compile_ms": team[who].about.get("compile_ms", 0),
             "version": team[who].about["version"]} for who, t in times.items()]


def records(programs, *arguments, **environment):
    done = subprocess.run([os.path.join(programs, "bench_backends"), *arguments], check=True,
                          stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **ENVIRONMENT, **environment})
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def from_disk(programs, rounds=5):
    """The first call of a process that finds nothing in the cache, and the least of some that do."""
    with tempfile.TemporaryDirectory() as cache:
        runs = [records(programs, "disk", XLA_CACHE=cache)[0] for _ in range(rounds + 1)]
    return {"without": runs[0], "with": min(runs[1:], key=lambda r: r["first_ms"])}


def measure(programs, peers, threads, rounds, tasks=ON_CPU, device="CPU"):
    about, = records(programs, "about", PJRT_DEVICE=device)
    out = {"about": about, "on": device, "steps": []}
    if device == "CPU":
        out["calls"] = records(programs, "calls")
        out["disk"] = from_disk(programs)
    for name in tasks if peers else ():
        for n in threads:
            out["steps"] += hold(name, programs, peers, n, min(rounds, 11), device)
            show_steps([r for r in out["steps"] if r["task"] == name and r["threads"] == n])
    return out


def verdict(ok):
    return "reached" if ok else "missed"


def show_steps(rows):
    task = TASKS[rows[0]["task"]]
    scale = {"us": 1e3, "ms": 1e6}[task.unit]
    for r in rows:
        low, middle, high = (t / scale for t in r["ns"])
        print(f"  {task.title:26}{r['threads']} thread(s)  {r['name']:18}{middle:10.2f}{low:10.2f}"
              f"{high:10.2f} {task.unit}{r['ratio'][1]:7.2f}{r['least_ratio']:7.2f} times the "
              f"plugin's, XLA compiled for {r['compile_ms']:.0f} ms  {r['version']}")


def show(results):
    about = results["about"]
    print(f"\nXLA as the backend: PJRT 0.{about['pjrt_minor']:.0f}, StableHLO {about['stablehlo']}, "
          f"{about['device']}: {os.path.basename(about['plugin'])}")
    for r in results.get("calls", ()):
        print(f"  a call with {r['arguments']:.0f} arguments: {r['backend_us'][1]:.2f} us "
              f"({r['backend_us'][0]:.2f}-{r['backend_us'][2]:.2f}), {r['times_by_hand'][1]:.2f} times "
              f"a loop by hand, {r['least']:.2f} the least; the library's own plan "
              f"{r['plan_us'][1]:.2f} us")
    if "calls" in results:
        most = max(r["times_by_hand"][1] for r in results["calls"])
        print(f"  target at most {BY_HAND} times by hand: {verdict(most <= BY_HAND)}")
    if "disk" in results:
        cold, warm = results["disk"]["without"], results["disk"]["with"]
        print(f"  the MLP's first call: {cold['first_ms']:.1f} ms compiled, {warm['first_ms']:.1f} from "
              f"disk ({warm['cpu_ms']:.1f} of processor time; the plugin loads the code for "
              f"{warm['load_ms']:.1f}; before it a process's first product {warm['once_ms']:.1f}); "
              f"target at most {FROM_DISK}: {verdict(warm['first_ms'] <= FROM_DISK)}")
    peers = {}
    for r in results["steps"]:
        if r["name"] not in (BACKEND, PLAN):
            peers.setdefault((r["task"], r["threads"]), {})[r["name"]] = r["ratio"][1]
    for (task, threads), ratios in peers.items():
        show_target(f"  {TASKS[task].title}, {threads} thread(s): ", ratios, results["on"])


def show_target(title, ratios, device):
    """ratios: each peer's time of a step in ours."""
    if device == "CPU":
        times = 1 / ratios["JAX jit"]
        print(f"{title}{times:.2f} times JAX's, target at most {JAX}: {verdict(times <= JAX)}")
        return
    best = min(ratios, key=ratios.get)
    print(f"{title}{ratios[best]:.2f} of the speed of {best}, the better of {', '.join(ratios)}; "
          f"target at least {OF_BEST}: {verdict(ratios[best] >= OF_BEST)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", help="folder of the built programs")
    parser.add_argument("peers", help="a Python that has jax, and torch for GPUs")
    parser.add_argument("--tasks", nargs="+", choices=TASKS)
    parser.add_argument("--device", default="CPU", help="of a plugin: CPU, CUDA, TPU")
    parser.add_argument("--threads", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    tasks = options.tasks or (ON_CPU if options.device == "CPU" else ON_GPU)
    show(measure(options.programs, options.peers, options.threads, options.rounds, tasks,
                 options.device))


if __name__ == "__main__":
    main()
