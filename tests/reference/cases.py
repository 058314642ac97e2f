# SPDX-License-Identifier: Apache-2.0
"""What the generators of reference numbers share: inputs, cases, and the file that they are written to.

The first line of such a file says which PyTorch and which generator made it; then a line is "case sizes… : elements…".
Gradients of sum(result * weights) are cases of their own, name/grad0 …. Inputs and weights are numbers that both sides
compute (support/reference.hpp)."""
import hashlib
import os

import numpy as np
import torch

out = []
nan, inf = float("nan"), float("inf")


def number(seed, i):
    mask = (1 << 64) - 1
    x = ((seed + 1) * 0x9E3779B97F4A7C15 + i * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def numbers(sizes, seed=0, dtype=torch.float32):
    n = int(np.prod(sizes, dtype=np.int64))
    raw = [number(seed, i) for i in range(n)]
    if dtype == torch.bool:
        values = [x & 1 for x in raw]
    elif dtype == torch.int64:
        values = [x % 16 - 8 for x in raw]
    else:
        values = [(x >> 40) / (1 << 24) * 8 - 4 for x in raw]
    return torch.tensor(values, dtype=dtype).reshape(sizes)


special = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e30, -1e30, 1e-30, 88.0, -88.0, 20.5, 3.0])


def number_text(v):
    if isinstance(v, float):
        return "%.9g" % v
    return str(int(v))


def write(name, t):
    t = t.detach()
    elements = " ".join(number_text(v) for v in t.reshape(-1).tolist())
    out.append(f"{name} {' '.join(map(str, t.shape))} : {elements}".replace("  ", " "))


def case(name, f, *inputs):
    """The result of f and, where it has any, its gradients."""
    x = [i.clone().requires_grad_() if i.is_floating_point() else i for i in inputs]
    y = f(*x)
    write(name, y)
    if not y.is_floating_point() or not y.requires_grad:
        return
    g = torch.autograd.grad(y, [i for i in x if i.requires_grad], numbers(y.shape, 99), allow_unused=True)
    for k, d in enumerate(g):
        write(f"{name}/grad{k}", torch.zeros_like(x[k]) if d is None else d)


def sum_of(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def save(generator, file):
    """Writes all cases to a file beside the generator."""
    folder, name = os.path.split(os.path.abspath(generator))
    sums = sum_of(generator) + sum_of(__file__)
    made_by = f"# PyTorch {torch.__version__.split('+')[0]}, {name} {hashlib.sha256(sums.encode()).hexdigest()}"
    with open(os.path.join(folder, file), "w") as f:
        f.write("\n".join([made_by] + out) + "\n")
