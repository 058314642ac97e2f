# SPDX-License-Identifier: Apache-2.0
"""Convolutions in PyTorch: conv_torch.py <memory format> <threads>; see conv.cpp."""

import sys
import time

import torch

import task


def drawn(stream, *sizes, scale=1.0):
    """Channels innermost in the order of the numbers, as conv.cpp has them."""
    return torch.from_numpy(scale * (task.uniform(stream, torch.Size(sizes).numel()) - 0.5)) \
        .float().view(*sizes)


def steps(order, batch, height, width, inputs, outputs, *numbers):
    """The three directions as functions."""
    kernel, stride, padding = [list(numbers[i:i + 2]) for i in (0, 2, 4)]
    groups = numbers[6]
    made = [(size + 2 * p - k) // s + 1
            for size, k, s, p in zip((height, width), kernel, stride, padding)]

    def image(stream, sizes, channels):
        return drawn(stream, batch, *sizes, channels).permute(0, 3, 1, 2) \
            .contiguous(memory_format=order)

    x, y = image(1, (height, width), inputs), image(3, made, outputs)
    w = drawn(2, outputs, inputs // groups, *kernel, scale=0.1).contiguous(memory_format=order)
    both = stride, padding, [1, 1]

    def gradient(*wanted):
        return torch.ops.aten.convolution_backward(
            y, x, w, None, *both, False, [0, 0], groups, [*wanted, False])

    return (lambda: torch.conv2d(x, w, None, *both, groups),
            lambda: gradient(True, False)[0], lambda: gradient(False, True)[1])


def main():
    order = getattr(torch, sys.argv[1])
    threads = int(sys.argv[2])
    torch.set_num_threads(threads)
    clock = task.clock_of(threads)
    torch.set_grad_enabled(False)
    task.say(ready=f"PyTorch {sys.argv[1]}", version=torch.__version__)
    for line in sys.stdin:
        command, way, *sizes = line.split()
        if command != "run":
            break
        step = steps(order, *map(int, sizes))[int(way)]
        made = step()
        least, until, turns = float("inf"), time.perf_counter() + 0.05, 0
        while turns < 3 or time.perf_counter() < until:
            start = clock()
            step()
            least = min(least, clock() - start)
            turns += 1
        task.say(ns=least, sum=made.double().abs().sum().item())


if __name__ == "__main__":
    main()
