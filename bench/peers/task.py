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


def clock_of(threads):
    """Nanoseconds of the processor, which neighbours do not take; of the clock where threads share
    work."""
    return time.process_time_ns if threads == 1 else time.perf_counter_ns


def import_jax(threads):
    """JAX on the device that BENCH_DEVICE names, the processor unless told; its flags come first."""
    os.environ["JAX_PLATFORMS"] = os.environ.get("BENCH_DEVICE", "cpu")
    if threads == 1:
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + \
            " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    return jax


def on_device(tensor_or_model):
    """PyTorch's, on the device that BENCH_DEVICE names."""
    return tensor_or_model.to(os.environ.get("BENCH_DEVICE", "cpu"))


def watch_compiling(jax):
    """A list of the milliseconds of each of XLA's compilations from now on."""
    took = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, seconds, **_:
        took.append(1e3 * seconds) if name.endswith("backend_compile_duration") else None)
    return took


def fastest(title, variants, data, finish, samples=20, clock=time.perf_counter_ns):
    """The fastest of several forms of the step: (name, reset, step). Short samples, the least."""
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
            start = clock()
            for batch in data:
                loss = step(*batch)
            finish(loss)
            least[name] = min(least[name], (clock() - start) / len(data))
    for name, ns in least.items():
        print(f"{title}, {name}: {ns / 1e3:.1f} us a step", file=sys.stderr)
    best = min(least, key=least.get)
    return best, *ready[best]


def resident(key):
    """Bytes of this process in memory: now, VmRSS, or at most so far, VmHWM."""
    with open("/proc/self/status", encoding="ascii") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith(key))


def serve(contestant, version, isa, reset, step, finish, batches, warm,
          clock=time.perf_counter_ns, compiled=()):
    """Answers `run N`: reset, `warm` steps, then N timed ones; blocks on stdin in between.

    reset() restores the first weights; step(i) trains on batch i of a ring of `batches`;
    finish(its result) is the loss. compiled has the milliseconds of XLA's compilations.
    """

    def run(n):
        reset()
        loss = None
        for i in range(warm):
            loss = step(i % batches)
        finish(loss)
        start = clock()
        for i in range(warm, warm + n):
            loss = step(i % batches)
        value = finish(loss)
        return clock() - start, value

    run(1)
    contestant += ", as installed" if "BENCH_INSTALLED" in os.environ else ""
    say(ready=contestant, version=version, isa=isa, compile_ms=max(compiled, default=0))
    for line in sys.stdin:
        command, *arguments = line.split()
        if command != "run":
            break
        ns, loss = run(int(arguments[0]))
        say(ns=ns, loss=loss)


def answer_ways(model, finish, clock):
    """Answers `run <what> <way> <warm> <n>` with the time of n steps after some untimed ones. What is
    training, on 8 samples, or reading<batch>.

    Answers `check <training|evaluation> [autocast]` with the losses of three clipped steps on two
    samples, without dropout in training. What a version does not support is an error.
    """
    for line in sys.stdin:
        command, *arguments = line.split()
        try:
            if command == "check":
                say(losses=model.check("training" in arguments, "autocast" in arguments))
            elif command == "run":
                what, way, warm, n = arguments
                step, warm, n = model.step(what, way), int(warm), int(n)
                for i in range(warm):
                    finish(step(i))
                start = clock()
                for i in range(n):
                    made = step(warm + i)
                value = finish(made)
                say(ns=clock() - start, loss=value)
            else:
                break
        except Exception as error:
            say(error=f"{type(error).__name__}: {error}".split("\n")[0])


def weigh(contestant, state, reset, step, finish, data, loaded):
    """Prints the bytes of parameters and optimizer, and the most that a step takes in addition, by
    heap.cpp, which was loaded before the library; and the most that is resident beyond `loaded`.
    After reset() nothing but the state is alive."""
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
    say(name=contestant, state=state, step=heap.bench_heap_most() - before,
        resident=resident("VmHWM") - loaded)
