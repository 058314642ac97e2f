# SPDX-License-Identifier: Apache-2.0
"""What every contestant trains, as in mlp_task.hpp, and how a contestant talks."""

import json
import sys
import time

import numpy as np

BATCH, INPUTS, HIDDEN, CLASSES, BATCHES = 64, 784, 128, 10, 16
LEARNING_RATE, MOMENTUM = 0.1, 0.9
WARM = 10


def hashed(stream, n):
    """n 32-bit numbers that depend on their position alone (lowbias32 of a counter)."""
    x = np.arange(n, dtype=np.uint32) + np.uint32(stream * 0x9E3779B9 & 0xFFFFFFFF)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def uniform(stream, n):
    return (hashed(stream, n) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def weights():
    """(out, in) weight and bias of both layers, uniform in ±1/sqrt(in)."""
    sizes = [(HIDDEN, INPUTS), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,)]
    fans = [INPUTS, INPUTS, HIDDEN, HIDDEN]
    out = []
    for stream, (shape, fan) in enumerate(zip(sizes, fans)):
        bound = np.float32(1 / np.sqrt(fan))
        u = uniform(stream, int(np.prod(shape)))
        out.append(((2 * u - 1) * bound).reshape(shape))
    return out


def batches():
    """A ring of (images, labels): noise, with every tenth pixel brighter where the label says."""
    n = BATCH * BATCHES
    labels = (hashed(4, n) % CLASSES).astype(np.int64)
    bright = np.arange(INPUTS)[None, :] % CLASSES == labels[:, None]
    images = uniform(5, n * INPUTS).reshape(n, INPUTS) - np.float32(0.5)
    images = (images + bright * np.float32(0.02)).astype(np.float32)
    return [(images[i : i + BATCH], labels[i : i + BATCH]) for i in range(0, n, BATCH)]


def say(**what):
    print(json.dumps(what), flush=True)


def fastest(title, variants, data, finish):
    """The best of several ways to write the step: (name, reset, step). Short samples, the least."""
    ready = {}
    for name, make in variants.items():
        try:
            reset, step = make()
            reset()
            finish(step(*data[0]))
        except Exception as error:  # a way that this version does not support
            print(f"{title}, {name}: {error}", file=sys.stderr)
            continue
        ready[name] = reset, step
    least = dict.fromkeys(ready, float("inf"))
    for _ in range(20):
        for name, (reset, step) in ready.items():
            start = time.perf_counter()
            for x, y in data:
                loss = step(x, y)
            finish(loss)
            least[name] = min(least[name], (time.perf_counter() - start) / len(data))
    for name, seconds in least.items():
        print(f"{title}, {name}: {seconds * 1e6:.1f} us", file=sys.stderr)
    best = min(least, key=least.get)
    return best, *ready[best]


def serve(contestant, version, isa, reset, step, finish):
    """Answers `run N`: reset, WARM steps, then N timed ones; blocks on stdin in between.

    reset() restores the first weights; step(i) trains on batch i; finish(its result) is the loss.
    """

    def run(n):
        reset()
        loss = None
        for i in range(WARM):
            loss = step(i % BATCHES)
        finish(loss)
        start = time.perf_counter_ns()
        for i in range(WARM, WARM + n):
            loss = step(i % BATCHES)
        value = finish(loss)
        return time.perf_counter_ns() - start, value

    run(3)
    say(ready=contestant, version=version, isa=isa)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command != "run":
            break
        ns, loss = run(int(arguments[0]))
        say(ns=ns, loss=loss)
