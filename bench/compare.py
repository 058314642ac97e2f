# SPDX-License-Identifier: Apache-2.0
"""The MLP contest: everyone trains the same batches in turn, round after round."""

import os
import sys
import time

from contest import Program, spread, ticks

STEPS = 400
PAUSE = 0.05  # seconds; a spinning thread of the last contestant goes to sleep
OURS = "xla compiled"
# Multiply-adds of one step: both layers forward, their weights' gradients, one input's gradient.
FLOPS = 2 * 64 * (2 * 784 * 128 + 3 * 128 * 10)


def contestants(programs, peers, threads, cache):
    """(command, environment) of everyone; the first is ours."""
    n = str(threads)
    for mode in ("compiled", "traced", "eager"):
        yield [os.path.join(programs, "bench_mlp"), mode, n], {}
    if not peers:
        return
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
    environment = {
        "OMP_NUM_THREADS": n, "MKL_NUM_THREADS": n, "PYTHONUNBUFFERED": "1",
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(cache, "inductor"),
    }
    for arguments in (["mlp_torch.py", "eager", n], ["mlp_torch.py", "compile", n],
                      ["mlp_jax.py", n]):
        yield [peers, os.path.join(here, arguments[0]), *arguments[1:]], environment


def others_busy(seconds=2):
    """Which share of the machine others use while we sleep."""
    before = ticks()
    time.sleep(seconds)
    after = ticks()
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def check_losses(losses):
    """Those who do not train alike cannot be compared."""
    for name, loss in losses.items():
        if not abs(loss - losses[OURS]) <= 1e-3 * abs(losses[OURS]):
            raise RuntimeError(f"{name} ends at loss {loss}, {OURS} at {losses[OURS]}")


def start(programs, peers, threads, cache):
    team = {}
    for command, environment in contestants(programs, peers, threads, cache):
        try:
            program = Program(command, threads, environment)
        except (RuntimeError, OSError) as error:
            print(f"  left out: {' '.join(command[-3:])}: {error}", file=sys.stderr)
            continue
        team[program.about["ready"]] = program
        print(f"  ready: {program.about['ready']}", file=sys.stderr)
    return team


def rounds_of(team, peak, rounds):
    """Nanoseconds per step of everyone in every round, the peaks, the last loss of each."""
    times = {name: [] for name in team}
    peaks, losses = [], {}
    names = list(team)
    for i in range(rounds):
        peaks.append(peak.ask("run")["gflops"])
        shift = i % len(names)
        for name in names[shift:] + names[:shift]:
            time.sleep(PAUSE)
            answer = team[name].ask(f"run {STEPS}")
            times[name].append(answer["ns"] / STEPS)
            losses[name] = answer["loss"]
        check_losses(losses)
        peaks.append(peak.ask("run")["gflops"])
    return times, peaks, losses


def contest(programs, peers, threads, rounds, cache):
    """One contest with a number of threads, as a dictionary."""
    print(f"mlp, {threads} thread(s): starting the contestants", file=sys.stderr)
    team = start(programs, peers, threads, cache)
    peak = Program([os.path.join(programs, "bench_peak"), str(threads)], threads)
    busy = others_busy()
    times, peaks, losses = rounds_of(team, peak, rounds)
    rows = []
    for name, program in team.items():
        rows.append({
            "name": name, "version": program.about["version"], "isa": program.about["isa"],
            "us": spread([t / 1e3 for t in times[name]]),
            "ratio": spread([t / o for t, o in zip(times[name], times[OURS])]),
            "loss": losses[name],
        })
        program.close()
    peak.close()
    peak_spread = spread(peaks)
    return {
        "threads": threads, "rounds": rounds, "steps": STEPS, "rows": rows,
        "peak_gflops": peak_spread, "us_at_peak": FLOPS / peak_spread[1] / 1e3,
        "peak_varies": (max(peaks) - min(peaks)) / peak_spread[1], "others_busy": busy,
    }


def show(result):
    print(f"\nMLP 784-128-10, batch 64, SGD with momentum: {result['threads']} thread(s), "
          f"{result['rounds']} rounds of {result['steps']} steps")
    low, middle, high = result["peak_gflops"]
    print(f"  peak {middle:.0f} GFLOP/s ({low:.0f}-{high:.0f}); "
          f"a step at peak: {result['us_at_peak']:.1f} us")
    if result["peak_varies"] > 0.1:
        print(f"  note: the peak varied by {result['peak_varies']:.0%} between rounds")
    if result["others_busy"] > 0.05:
        print(f"  note: others used {result['others_busy']:.0%} of the machine: run it again alone")
    print(f"  {'':16}{'us per step':>12}{'p10':>8}{'p90':>8}{'x ours':>8}{'p10':>7}{'p90':>7}"
          f"{'loss':>11}  version, instructions")
    for row in result["rows"]:
        low, middle, high = row["us"]
        ratio = row["ratio"]
        print(f"  {row['name']:16}{middle:12.1f}{low:8.1f}{high:8.1f}{ratio[1]:8.2f}{ratio[0]:7.2f}"
              f"{ratio[2]:7.2f}{row['loss']:11.6f}  {row['version']}, {row['isa']}")
