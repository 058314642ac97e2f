# SPDX-License-Identifier: Apache-2.0
"""What sequences.cpp runs: sizes, weights and sequences; and how a contestant answers."""

import sys
import time

import numpy as np

import task

STEPS = 100  # of LSTM and GRU
SPEAKER = {"steps": 160, "inputs": 40, "hidden": 256, "layers": 3}
LORENZ_STEPS, EVERY, TIME_STEP, COUPLING = 100_000, 250, 0.005, 30.0
NODES, TURNS = 30, 614
GATES = {"lstm": 4, "gru": 3, "normed": 4, "speaker": 4}
FEWEST, SECONDS = 3, 0.3


def drawn(stream, shape, bound, kind=np.float32):
    u = task.uniform(stream, int(np.prod(shape))).astype(np.float64)
    return (bound * (2 * u - 1)).astype(kind).reshape(shape)


def shapes(name, hidden):
    """Of every parameter, in the order of the model's members."""
    wide = GATES[name] * hidden
    if name == "normed":  # weights of input and state; scale and shift of the three norms
        return [(wide, hidden), (wide, hidden), (wide,), (wide,), (wide,), (wide,), (hidden,),
                (hidden,)]
    layers = SPEAKER["layers"] if name == "speaker" else 1
    return [shape for layer in range(layers)
            for shape in ((wide, SPEAKER["inputs"] if name == "speaker" and layer == 0 else hidden),
                          (wide, hidden), (wide,), (wide,))]


def weights(name, hidden):
    return [drawn(10 + i, shape, hidden**-0.5) for i, shape in enumerate(shapes(name, hidden))]


def series(name, batch, hidden):
    steps, inputs = (SPEAKER["steps"], SPEAKER["inputs"]) if name == "speaker" else (STEPS, hidden)
    return drawn(1, (steps, batch, inputs), 1)


def answer(label, version, variants, clock):
    """Answers `run <task> <way> <batch> <hidden>` with the least time of a call of the fastest way
    to write it, and what all must agree on. variants(task, way, batch, hidden) has for each way a
    function that makes a pair: the call, which ends when its result is there, and the sum of it."""
    task.say(ready=label, version=version)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command != "run":
            break
        name, way, batch, hidden = arguments
        best, total = None, None
        for variant, make in variants(name, way, int(batch), int(hidden)).items():
            try:
                call, sum_of = make()
                total = float(sum_of(call()))
            except Exception as error:  # a way that this version does not support
                print(f"{label}, {variant}: {error}"[:200], file=sys.stderr)
                continue
            least, until, turns = float("inf"), time.perf_counter() + SECONDS, 0
            while turns < FEWEST or time.perf_counter() < until:
                start = clock()
                call()
                least = min(least, clock() - start)
                turns += 1
            if best is None or least < best["ns"]:
                best = {"ns": least, "sum": total, "variant": variant}
        task.say(**(best or {"error": f"{name} does not run"}))
