# SPDX-License-Identifier: Apache-2.0
"""Matrix products in PyTorch: gemm_torch.py <threads>; see products.cpp."""

import sys
import time

import torch

import task


def drawn(stream, *sizes):
    numbers = task.uniform(stream, torch.Size(sizes).numel())
    return torch.from_numpy(2 * (numbers - 0.5)).float().view(*sizes)


def matrices(stream, count, rows, columns, transposed):
    """Of one matrix two sizes; a transposed one is in memory column after column."""
    sizes = (columns, rows) if transposed else (rows, columns)
    x = drawn(stream, count, *sizes)
    x = x.transpose(1, 2) if transposed else x
    return x if count > 1 else x[0]


def in_autocast(product, a, b):
    """Plain tensors, so both are converted in each call."""
    with torch.autocast("cpu", torch.bfloat16):
        return product(a, b)


def one_dnn(a, b):
    """MKL multiplies float32 in torch.mm; oneDNN does where a linear layer is compiled."""
    return torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], "")


def algorithms(rounded, count, m, n, k, a_transposed, b_transposed):
    """The product by each algorithm of PyTorch, by name."""
    a = matrices(1, count, m, k, a_transposed)
    b = matrices(2, count, k, n, b_transposed)
    product = torch.bmm if count > 1 else torch.mm
    if rounded:
        return {"autocast": lambda: in_autocast(product, a, b)}
    made = torch.empty((count, m, n) if count > 1 else (m, n))
    both = {"MKL": lambda: product(a, b, out=made)}
    if count == 1:
        both["oneDNN"] = lambda turned=b.t(): one_dnn(a, turned)
    return both


def least_of(call, clock):
    call()
    least, until, turns = float("inf"), time.perf_counter() + 0.1, 0
    while turns < 3 or time.perf_counter() < until:
        start = clock()
        call()
        least = min(least, clock() - start)
        turns += 1
    return least


def main():
    threads = int(sys.argv[1])
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    clock = task.clock_of(threads)
    task.say(ready="PyTorch", version=torch.__version__)
    for line in sys.stdin:
        command, *numbers = line.split()
        if command not in ("check", "run"):
            break
        calls = algorithms(*map(int, numbers))
        if command == "run":
            task.say(ns={name: least_of(call, clock) for name, call in calls.items()})
            continue
        answer = {}
        for name, call in calls.items():
            made = call().double().flatten()
            answer[name] = {"sum": made.abs().sum().item(),
                            "mixed": (made * drawn(3, made.numel()).double()).sum().item()}
        task.say(made=answer)


if __name__ == "__main__":
    main()
