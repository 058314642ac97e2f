# SPDX-License-Identifier: Apache-2.0
"""Attention in PyTorch: attention_torch.py <threads>; see attention.cpp."""

import ctypes
import sys
import time

import torch
import torch.nn.functional as F

import task


def drawn(stream, *sizes):
    numbers = task.uniform(stream, torch.Size(sizes).numel())
    return torch.from_numpy(2 * (numbers - 0.5)).float().view(*sizes)


def main():
    threads = int(sys.argv[1])
    torch.set_num_threads(threads)
    clock = task.clock_of(threads)
    heap = ctypes.CDLL(None)
    for f in (heap.bench_heap_live, heap.bench_heap_most):
        f.restype = ctypes.c_longlong
    task.say(ready="PyTorch", version=torch.__version__)
    for line in sys.stdin:
        command, *numbers = line.split()
        if command != "run":
            break
        gradients, batch, heads, kv_heads, sequence, width, causal, autocast = map(int, numbers)
        x = [drawn(i + 1, batch, n, sequence, width).requires_grad_(bool(gradients))
             for i, n in enumerate((heads, kv_heads, kv_heads))]
        g = drawn(4, batch, heads, sequence, width)

        def step():
            for p in x:
                p.grad = None
            with torch.autocast("cpu", torch.bfloat16, enabled=bool(autocast)):
                y = F.scaled_dot_product_attention(*x, is_causal=bool(causal),
                                                   enable_gqa=heads != kv_heads)
            if gradients:
                y.backward(g.to(y.dtype))
            return y

        before = heap.bench_heap_live()
        heap.bench_heap_forget()
        step()
        most = heap.bench_heap_most() - before
        least, until, turns = float("inf"), time.perf_counter() + 0.1, 0
        while turns < 3 or time.perf_counter() < until:
            start = clock()
            step()
            least = min(least, clock() - start)
            turns += 1
        total = step().detach().double().abs().sum().item()
        if gradients:
            total += sum(p.grad.double().abs().sum().item() for p in x)
        task.say(ns=least, sum=total, bytes=most)


if __name__ == "__main__":
    main()
