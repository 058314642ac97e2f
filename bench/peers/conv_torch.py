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


def steps(order, batch, size, inputs, outputs, kernel, stride, padding, groups):
    """The three ways as functions."""
    made = (size + 2 * padding - kernel) // stride + 1

    def image(stream, height, channels):
        return drawn(stream, batch, height, height, channels).permute(0, 3, 1, 2) \
            .contiguous(memory_format=order)

    x, y = image(1, size, inputs), image(3, made, outputs)
    w = drawn(2, outputs, inputs // groups, kernel, kernel, scale=0.1).contiguous(
        memory_format=order)
    both = [stride, stride], [padding, padding], [1, 1]

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
