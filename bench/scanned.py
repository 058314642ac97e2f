# SPDX-License-Identifier: Apache-2.0
"""What a step takes whose layers are a loop (scan_layers), against layers called one by one."""

import os
import statistics
import sys
import time

from compare import PAUSE
from contest import machine, spread
from models import AGREE, MODELS, start

ROUNDS, TURN = 9, 0.5   # seconds of a turn
MOST = 1.02             # times as long as one by one
DEEP = ("resnet50", "bert", "vit")


def contests(programs, threads):
    """(title, (command one by one, command as a loop), request but for the number of steps, request
    for losses to compare)."""
    n = str(threads)
    path = os.path.join(programs, "bench_")
    yield ("decoder of 24 layers, training",
           [[f"{path}decoder_deep{form}", "compiled", n] for form in ("", "_scanned")], "run",
           "run 5")
    for name in DEEP:
        both = [[f"{path}{name}_{form}", n] for form in ("model", "scanned")]
        title = MODELS[name].title
        check = f"check {'evaluation' if MODELS[name].random else 'training'}"
        yield f"{title}, training on 8 samples", both, "run training compiled 1", check
        yield f"{title}, reading one sample", both, "run reading1 compiled 1", None


def losses(answer):
    return answer.get("losses") or [answer["loss"]]


def hold(title, both, request, check, threads):
    programs = [start(command) for command in both]
    one_by_one, as_a_loop = (losses(program.ask(check or f"{request} 1")) for program in programs)
    for a, b in zip(one_by_one, as_a_loop):
        if not abs(a - b) <= AGREE["training" if check else "reading"] * one_by_one[0]:
            raise RuntimeError(f"{title}: {one_by_one} one by one, {as_a_loop} as a loop")
    for program in programs:
        program.ask(f"{request} 1")
    steps = max(1, min(200, round(TURN * 1e9 / programs[0].ask(f"{request} 1")["ns"])))
    times = ([], [])
    for r in range(ROUNDS):
        for i in ((0, 1) if r % 2 else (1, 0)):
            time.sleep(PAUSE)
            times[i].append(programs[i].ask(f"{request} {steps}")["ns"] / steps)
    for program in programs:
        program.close()
    return {"what": title, "threads": threads, "ms": [statistics.median(t) / 1e6 for t in times],
            "ratio": spread([b / a for a, b in zip(*times)])}


def measure(programs, _peers, threads):
    return [hold(*contest, threads) for contest in contests(programs, threads)]


def show(rows):
    print(f"\n### Layers as a loop, {rows[0]['threads']} thread(s)\n")
    print("| ms | one by one | as a loop | times as long (10th, 90th percentile) |")
    print("|---|---|---|---|")
    for r in rows:
        low, middle, high = r["ratio"]
        print(f"| {r['what']} | {r['ms'][0]:.4g} | {r['ms'][1]:.4g} | "
              f"{middle:.3f} ({low:.3f}, {high:.3f}) |")
    training = [r for r in rows if "training" in r["what"]]
    most = max(training, key=lambda r: r["ratio"][1])
    print(f"\nA training step takes at most {most['ratio'][1]:.3f} times as long as a loop (target "
          f"{MOST}: {'reached' if most['ratio'][1] <= MOST else 'missed'}).")


if __name__ == "__main__":  # scanned.py <folder of programs> [<threads>]
    print(machine()["model"])
    show(measure(sys.argv[1], None, int(sys.argv[2]) if len(sys.argv) > 2 else 1))
