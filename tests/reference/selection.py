# SPDX-License-Identifier: Apache-2.0
"""Writes selection.txt: what PyTorch 2.15 computes for the cases of tests/op/selection.cpp.

    pip install torch==2.15.0 numpy && python selection.py"""
import torch

import cases
from cases import case, inf, nan, numbers, save, write

strange = torch.tensor([[1.0, nan, 3, 2], [inf, 2, -inf, 1], [-0.0, 0, -0.0, 0], [nan, nan, nan, nan], [100, 200, 300, -1e30]])
ties = torch.tensor([[1.0, 3, 3, 2, 3], [5, 5, 4, 5, 1]])


def quantiles():
    x = numbers((3, 4, 5))
    several = torch.tensor([0.0, 0.3, 1.0])
    for name in "linear lower higher midpoint nearest".split():
        case(f"quantile/{name}", lambda t: torch.quantile(t, 0.3, 1, interpolation=name), x)
        write(f"nanquantile/{name}", torch.nanquantile(strange, 0.4, 1, interpolation=name))
    case("quantile/several", lambda t: torch.quantile(t, several, -1), x)
    case("quantile/keepdim", lambda t: torch.quantile(t, 0.75, 0, keepdim=True), x)
    case("quantile/all", lambda t: torch.quantile(t, 0.9), x)
    write("quantile/strange", torch.quantile(strange, 0.4, 1))
    write("nanquantile/all", torch.nanquantile(strange[:3], 0.6))
    write("nanquantile/keepdim", torch.nanquantile(strange, 0.6, 0, keepdim=True))
    for k in 1, 3:
        case(f"kthvalue/{k}", lambda t: torch.kthvalue(t, k, 1)[0], x)
        write(f"kthvalue/{k}/index", torch.kthvalue(x, k, 1)[1])
    write("kthvalue/strange", torch.kthvalue(strange, 3)[0])


def cumulative():
    for name in "cummax", "cummin":
        f = getattr(torch, name)
        for axis in 0, 1:
            case(f"{name}/{axis}", lambda t: f(t, axis)[0], numbers((5, 4)))
            write(f"{name}/{axis}/index", f(numbers((5, 4)), axis)[1])
        case(f"{name}/ties", lambda t: f(t, 1)[0], ties)
        write(f"{name}/ties/index", f(ties, 1)[1])
        write(f"{name}/strange", f(strange, 1)[0])
        write(f"{name}/strange/index", f(strange, 1)[1])


def scatters():
    x, source = numbers((3, 4)), numbers((3, 5), 1)
    index = torch.tensor([[0, 0, 2, 2, 0], [1, 3, 1, 1, 1], [0, 1, 2, 3, 3]])
    zeros = torch.tensor([[0.0, 2, 0, 3, 4], [2, 0, 5, 1, 0], [0, 1, 0, 0, 1]])
    for name in "sum prod mean amax amin".split():
        for kind, own in ("", True), ("/without_self", False):
            case(f"scatter_reduce/{name}{kind}",
                 lambda t, s: t.scatter_reduce(1, index, s, name, include_self=own), x, source)
        write(f"scatter_reduce/{name}/integers", numbers((3, 4), 2, torch.int64).scatter_reduce(
            1, index, numbers((3, 5), 3, torch.int64), name))
    case("scatter_reduce/prod/zeros", lambda t, s: t.scatter_reduce(1, index, s, "prod"), zeros[:, :4], zeros)
    case("scatter_reduce/amax/ties", lambda t, s: t.scatter_reduce(1, index, s, "amax"), zeros[:, :4], zeros)
    case("scatter_reduce/rows", lambda t, s: t.scatter_reduce(0, index[:2, :3] % 3, s, "amin"), x, source[:2, :3])


def sets():
    whole = numbers((4, 5), 4, torch.int64)
    for name, x in ("whole", whole), ("ties", ties), ("strange", strange):
        for function in torch.unique, torch.unique_consecutive:
            for part, t in zip(("values", "inverse", "counts"), function(x, return_inverse=True, return_counts=True)):
                if (name, part) != ("strange", "inverse"):  # NaN is in no order there
                    write(f"{function.__name__}/{name}/{part}", t)
    write("isin/whole", torch.isin(whole, torch.tensor([3, -2, 3, 7])))
    write("isin/inverted", torch.isin(whole, torch.tensor([3, -2, 3, 7]), invert=True))
    write("isin/strange", torch.isin(strange, torch.tensor([[nan, 0.0], [inf, 200.0]])))


def products():
    case("kron/matrices", torch.kron, numbers((2, 3)), numbers((3, 2), 1))
    case("kron/ranks", torch.kron, numbers((2, 3, 2)), numbers((4,), 1))
    case("cross/last", lambda a, b: torch.linalg.cross(a, b), numbers((4, 3)), numbers((4, 3), 1))
    case("cross/first", lambda a, b: torch.cross(a, b, dim=0), numbers((3, 2)), numbers((3, 2), 1))
    case("cross/broadcast", lambda a, b: torch.linalg.cross(a, b), numbers((4, 3)), numbers((1, 3), 1))


for part in quantiles, cumulative, scatters, sets, products:
    part()
cases.out[:] = [f"selection/{line}" for line in cases.out]
save(__file__, "selection.txt")
