# SPDX-License-Identifier: Apache-2.0
"""Where weights and batches come from, as in numbers.hpp, and how a contestant talks."""

import ctypes
import gc
import json
import os
import sys
import time

import numpy as np


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


def say(**what):
    print(json.dumps(what), flush=True)


def fastest(title, variants, data, finish, samples=20):
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
    if len(ready) == 1:
        return next((name, *ways) for name, ways in ready.items())
    least = dict.fromkeys(ready, float("inf"))
    for _ in range(samples):
        for name, (reset, step) in ready.items():
            start = time.perf_counter()
            for batch in data:
                loss = step(*batch)
            finish(loss)
            least[name] = min(least[name], (time.perf_counter() - start) / len(data))
    for name, seconds in least.items():
        print(f"{title}, {name}: {seconds * 1e6:.1f} us a step", file=sys.stderr)
    best = min(least, key=least.get)
    return best, *ready[best]


def serve(contestant, version, isa, reset, step, finish, batches, warm):
    """Answers `run N`: reset, `warm` steps, then N timed ones; blocks on stdin in between.

    reset() restores the first weights; step(i) trains on batch i of a ring of `batches`;
    finish(its result) is the loss.
    """

    def run(n):
        reset()
        loss = None
        for i in range(warm):
            loss = step(i % batches)
        finish(loss)
        start = time.perf_counter_ns()
        for i in range(warm, warm + n):
            loss = step(i % batches)
        value = finish(loss)
        return time.perf_counter_ns() - start, value

    run(1)
    contestant += ", as installed" if "BENCH_INSTALLED" in os.environ else ""
    say(ready=contestant, version=version, isa=isa)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command != "run":
            break
        ns, loss = run(int(arguments[0]))
        say(ns=ns, loss=loss)


def weigh(contestant, state, reset, step, finish, data):
    """Prints the bytes of parameters and optimizer, and the most that a step takes beside them, by
    heap.cpp, which was loaded before the library. After reset() nothing but the state is alive."""
    heap = ctypes.CDLL(None)
    for f in (heap.bench_heap_live, heap.bench_heap_most):
        f.restype = ctypes.c_longlong
    reset()
    for batch in data:
        finish(step(*batch))
    reset()
    gc.collect()
    before = heap.bench_heap_live()
    heap.bench_heap_forget()
    for batch in data:
        finish(step(*batch))  # one step after the other
    say(name=contestant, state=state, step=heap.bench_heap_most() - before)
