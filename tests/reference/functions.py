# SPDX-License-Identifier: Apache-2.0
"""Writes functions.txt: what PyTorch 2.15 computes for the cases of functions.cpp, of the functions that are in
xla/functions.hpp.

    pip install torch==2.15.0 numpy && python functions.py"""
import torch
import torch.nn.functional as F

import cases
from cases import case, inf, nan, numbers, save, write

points = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.25, 1e-4, 1e-30, 2.5, 3.0, -7.5, 20.5, 88.0, -89.0])


def unary(name, f, x=None, gradient=True, at=points):
    """At ordinary points with the gradient, and at special ones with it too."""
    for kind, t in ("odd", numbers((7, 5)) if x is None else x), ("points", at):
        case(f"{name}/{kind}", f, t) if gradient else write(f"{name}/{kind}", f(t))


def binary(name, f, low=None, gradient=True):
    shift = (lambda t: t) if low is None else (lambda t: t.abs() + low)
    few = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 88.0, 3e38])
    a, b = few.repeat_interleave(len(few)), few.repeat(len(few))
    write(f"{name}/points", f(a, b))
    for kind, x, y in ("broadcast", numbers((3, 1, 5)), numbers((4, 1), 1)), ("same", numbers((5, 3), 2), numbers((5, 3), 3)):
        case(f"{name}/{kind}", f, shift(x), shift(y)) if gradient else write(f"{name}/{kind}", f(shift(x), shift(y)))


def elementwise():
    unit = numbers((7, 5)) / 4.1
    for name in "asin acos atanh erfinv".split():
        unary(name, getattr(torch, name), unit)
    for name in "atan asinh sinh cosh exp2 frac nan_to_num deg2rad rad2deg".split():
        unary(name, getattr(torch, name))
    for name in "log2 log10 lgamma".split():
        unary(name, getattr(torch, name), numbers((7, 5)).abs() + 0.1)
    # Near 0 the gradient cancels in PyTorch.
    case("sinc/odd", torch.sinc, numbers((7, 5)))
    write("sinc/points", torch.sinc(points))
    # The gradients at poles and at -0 are PyTorch's alone.
    case("digamma/odd", torch.digamma, numbers((7, 5)).abs() + 0.1)
    write("digamma/points", torch.digamma(points))
    case("logit/odd", torch.logit, unit.abs() + 0.01)
    write("logit/points", torch.logit(points))
    unary("acosh", torch.acosh, numbers((7, 5)).abs() + 1.1)
    for name in "isposinf isneginf".split():
        unary(name, getattr(torch, name), gradient=False)
    binary("logaddexp", torch.logaddexp)
    binary("hypot", torch.hypot)
    binary("xlogy", torch.xlogy, 0.1)
    binary("xlog1py", torch.special.xlog1py, 0.1)
    binary("fmax", torch.fmax)
    binary("fmin", torch.fmin)
    binary("heaviside", torch.heaviside, gradient=False)
    binary("isclose", torch.isclose, gradient=False)
    binary("isclose_nan", lambda a, b: torch.isclose(a, b, 0.1, 0.01, equal_nan=True), gradient=False)
    case("logaddexp2", torch.logaddexp2, numbers((3, 5)), numbers((3, 5), 1))
    case("ldexp", torch.ldexp, numbers((3, 5)), torch.round(numbers((3, 5), 1)))
    case("polygamma", lambda x: torch.polygamma(1, x), numbers((7,)).abs() + 1)
    case("mvlgamma", lambda x: torch.mvlgamma(x, 3), numbers((7,)).abs() + 1.5)
    zero = torch.tensor([0.0, 0.0, 0.0, 0.5])
    case("xlogy/zero", lambda x: torch.xlogy(x, torch.tensor([0.0, 2.0, -1.0, 1.0])), zero)


def activations():
    unary("selu", F.selu)
    unary("celu", lambda x: F.celu(x, 1.5))
    # The gradient of NaN is 0 in PyTorch's vectorised loops, and not in the others.
    unary("hardshrink", F.hardshrink, at=points[1:])
    unary("softshrink", lambda x: F.softshrink(x, 0.25), at=points[1:])
    unary("tanhshrink", F.tanhshrink)
    unary("softsign", F.softsign)
    unary("threshold", lambda x: F.threshold(x, 0.5, 20))
    case("softmin", lambda x: F.softmin(x, 1), numbers((3, 7, 2)))


strange = torch.tensor([[1.0, nan, 3, 2], [inf, 2, -inf, 1], [-0.0, 0, -0.0, 0], [nan, nan, nan, nan], [100, 200, 300, -1e30]])


def reductions():
    case("nansum", lambda x: torch.nansum(x, 1), strange)
    case("nansum/all", torch.nansum, numbers((3, 4)))
    case("nanmean", lambda x: torch.nanmean(x, 1), strange[:3])
    write("nanmean/nothing", torch.nanmean(strange[3]))
    case("nanmean/all", torch.nanmean, numbers((3, 4)))
    write("count_nonzero", torch.count_nonzero(strange, 1))
    for i, name in enumerate(("least", "largest")):
        case(f"aminmax/{name}", lambda x: torch.aminmax(x)[i], numbers((3, 4)))
        case(f"var_mean/{i}", lambda x: torch.var_mean(x)[i], numbers((3, 4)))
        case(f"std_mean/{i}", lambda x: torch.std_mean(x)[i], numbers((3, 4)))
    case("dist", lambda x, y: torch.dist(x, y, 3), numbers((3, 4)), numbers((4,), 1))
    for axis in 0, 1:
        case(f"logcumsumexp/{axis}", lambda x: torch.logcumsumexp(x, axis), numbers((5, 4)) * 30)
        write(f"logcumsumexp/strange{axis}", torch.logcumsumexp(strange, axis))
    case("logcumsumexp/large", lambda x: torch.logcumsumexp(x, 0), torch.tensor([100.0, 100, -200, 101]))


def matrices():
    wide, tall, square = numbers((3, 5)), numbers((5, 2), 1), numbers((4, 4), 2)
    odd = square.clone()
    odd[0, 1], odd[2, 0] = inf, nan
    for name, x in ("wide", wide), ("tall", tall), ("square", square), ("odd", odd):
        for offset in 0, 1, -1:
            case(f"diagonal/{name}{offset}", lambda t: torch.diagonal(t, offset), x)
    case("trace/odd", torch.trace, odd)
    case("trace/wide", torch.trace, wide)
    for name, axes in ("first", (0, 1)), ("last", (-2, -1)), ("turned", (2, 0)):
        case(f"diagonal/{name}", lambda x: torch.diagonal(x, 1, *axes), numbers((2, 3, 4)))
    case("diag_embed/offset", lambda x: torch.diag_embed(x, -1), numbers((2, 3)))
    ties = torch.tensor([1.0, 2, 3])
    case("fmax/ties", torch.fmax, ties, torch.tensor([1.0, nan, 2]))
    case("logit/eps", lambda x: torch.logit(x, 0.1), torch.tensor([0.0, 0.5, 0.95]))
    case("diag_embed", torch.diag_embed, torch.tensor([[inf, 1.0, nan], [2, 3, -inf]]))
    case("diag/vector", torch.diag, numbers((3,)))
    case("diag/matrix", lambda x: torch.diag(x, 1), square)
    case("diagflat", torch.diagflat, numbers((2, 2)))
    b, c = numbers((2, 3, 4)), numbers((2, 4, 5), 1)
    case("addmv", lambda x, m, v: torch.addmv(x, m, v, beta=0.5, alpha=2), numbers((3,)), wide, numbers((5,), 3))
    case("addr", lambda x, v, w: torch.addr(x, v, w, beta=0.5, alpha=2), wide, numbers((3,), 3), numbers((5,), 4))
    case("baddbmm", lambda x, p, q: torch.baddbmm(x, p, q, beta=0.5, alpha=2), numbers((2, 3, 5), 2), b, c)
    case("addbmm", lambda x, p, q: torch.addbmm(x, p, q, beta=0.5, alpha=2), wide, b, c)
    write("matrix_power/0", torch.matrix_power(square, 0))
    for n in 1, 3, 6:
        case(f"matrix_power/{n}", lambda x: torch.matrix_power(x, n), square / 4)
    case("cov", torch.cov, wide)
    case("diff", torch.diff, wide)
    case("diff/twice", lambda x: torch.diff(x, 2, 0), tall)
    case("trapezoid", lambda y: torch.trapezoid(y, dx=0.5), wide)
    case("trapezoid/places", torch.trapezoid, wide, numbers((5,), 6))
    for k in 1, 2, -1, 4:
        case(f"rot90/{k}", lambda x: torch.rot90(x, k), wide)


def stacking():
    v, w, m, n = numbers((3,)), numbers((3,), 1), numbers((2, 3), 2), numbers((2, 3), 3)
    for name in "hstack vstack dstack column_stack row_stack".split():
        f = getattr(torch, name)
        case(f"{name}/vectors", lambda *x: f(x), v, w)
        case(f"{name}/matrices", lambda *x: f(x), m, n)
    for name in "atleast_1d atleast_2d atleast_3d".split():
        for kind, x in ("number", numbers(())), ("vector", v), ("matrix", m):
            case(f"{name}/{kind}", getattr(torch, name), x)
    case("take", lambda x: torch.take(x, torch.tensor([[0, 5], [2, 2]])), m)


def losses():
    x, y = numbers((4, 3)), numbers((4, 3), 1)
    sign, zero_one = torch.where(y > 0, 1.0, -1.0), torch.where(y > 0, 1.0, 0.0)
    case("pairwise_distance", F.pairwise_distance, x, y)
    case("hinge_embedding_loss", lambda t: F.hinge_embedding_loss(t, sign, margin=2), x)
    case("hinge_embedding_loss/sum", lambda t: F.hinge_embedding_loss(t, sign, reduction="sum"), x)
    case("soft_margin_loss", lambda t: F.soft_margin_loss(t, sign), x)
    case("multilabel_soft_margin_loss", lambda t: F.multilabel_soft_margin_loss(t, zero_one), x)
    case("multilabel_soft_margin_loss/none",
         lambda t: F.multilabel_soft_margin_loss(t, zero_one, reduction="none"), x)


for part in elementwise, activations, reductions, matrices, stacking, losses:
    part()
# Names of their own, as ops.txt has some of the same.
cases.out[:] = [f"functions/{line}" for line in cases.out]
save(__file__, "functions.txt")
