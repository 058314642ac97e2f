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


def arrays():
    unary("angle", torch.angle, gradient=False)
    unary("signbit", torch.signbit, gradient=False, at=points[1:])
    binary("copysign", torch.copysign, 0.1)
    wide, square, v = numbers((3, 5)), numbers((4, 4), 2), numbers((5,), 3)
    case("corrcoef", torch.corrcoef, wide)
    case("cumulative_trapezoid", lambda y: torch.cumulative_trapezoid(y, dx=0.5), wide)
    case("cumulative_trapezoid/places", torch.cumulative_trapezoid, wide, v)
    for axis in 0, 1:
        case(f"gradient/{axis}", lambda x: torch.gradient(x, spacing=0.5, dim=axis)[0], wide)
        write(f"nanmedian/{axis}", torch.nanmedian(strange, axis)[0])
    case("nanmedian", torch.nanmedian, strange[:3])
    write("nanmedian/nothing", torch.nanmedian(strange[3]))
    for name, f in ("triu_indices", torch.triu_indices), ("tril_indices", torch.tril_indices):
        for offset in 0, 1, -2:
            write(f"{name}/{offset}", f(3, 4, offset))
    for i, axis in enumerate(torch.unravel_index(torch.tensor([[0, 7], [23, 14]]), (2, 3, 4))):
        write(f"unravel_index/{i}", axis)
    case("cartesian_prod", torch.cartesian_prod, v, numbers((3,), 4), numbers((2,), 5))
    case("combinations", torch.combinations, v)
    case("combinations/3", lambda x: torch.combinations(x, 3), v)
    case("combinations/again", lambda x: torch.combinations(x, 3, True), numbers((3,), 4))
    case("block_diag", torch.block_diag, wide, square, numbers((1, 2), 4))
    write("histc", torch.histc(numbers((7, 5)), 4))
    write("histc/within", torch.histc(numbers((7, 5)), 6, -1, 2.5))
    write("histc/one", torch.histc(torch.ones(3), 3))
    at = torch.tensor([3, 0])
    case("index_fill", lambda x: torch.index_fill(x, 1, at, 0.5), wide)
    case("put", lambda x, y: torch.ops.aten.put(x, torch.tensor([[14, 2], [3, 0]]), y), wide, numbers((2, 2), 6))
    case("put/added", lambda x, y: torch.ops.aten.put(x, torch.tensor([[14, 2], [2, 0]]), y, True), wide, numbers((2, 2), 6))
    mask = numbers((5,), 7, torch.bool)
    case("masked_scatter", lambda x, y: torch.masked_scatter(x, mask.expand(3, 5), y), wide, numbers((4, 4), 8))
    for offset in 0, 1, -1, 3:
        n = len(torch.diagonal(wide, offset))
        case(f"diagonal_scatter/{offset}", lambda x, y: torch.diagonal_scatter(x, y, offset), wide, numbers((n,), 9))
    case("renorm", lambda x: torch.renorm(x, 2, 0, 5), numbers((3, 2, 2)))
    for name in "hann hamming blackman bartlett".split():
        f = getattr(torch, name + "_window")
        for n in 1, 2, 7:
            write(f"{name}_window/{n}", f(n))
            write(f"{name}_window/{n}/symmetric", f(n, periodic=False))


def more_losses():
    x, classes = numbers((4, 3)), torch.tensor([2, 0, 0, 1])
    weight = numbers((3,), 2).abs()
    case("multi_margin_loss", lambda t: F.multi_margin_loss(t, classes), x)
    case("multi_margin_loss/squares", lambda t: F.multi_margin_loss(t, classes, p=2, margin=0.5, weight=weight, reduction="none"), x)
    labels = torch.tensor([[2, 0, -1], [-1, 1, 0], [1, -1, 2], [0, 1, 2]])
    case("multilabel_margin_loss", lambda t: F.multilabel_margin_loss(t, labels), x)
    case("multilabel_margin_loss/none", lambda t: F.multilabel_margin_loss(t, labels, reduction="none"), x)
    a, b, c = numbers((4, 3)), numbers((4, 3), 1), numbers((4, 3), 2)
    case("triplet_margin_with_distance_loss", F.triplet_margin_with_distance_loss, a, b, c)
    case("triplet_margin_with_distance_loss/swap",
         lambda *t: F.triplet_margin_with_distance_loss(*t, margin=2, swap=True, reduction="sum"), a, b, c)
    case("pdist", F.pdist, numbers((5, 3)))
    case("pdist/1", lambda t: F.pdist(t, 1), numbers((5, 3)))
    case("rrelu", F.rrelu, x)


def images():
    signal, image, volume = numbers((2, 3, 9)), numbers((2, 4, 7, 5), 1), numbers((2, 3, 6, 5, 7), 2)
    case("channel_shuffle", lambda x: F.channel_shuffle(x, 2), image)
    for size in 1, 2, 5:
        case(f"local_response_norm/{size}", lambda x: F.local_response_norm(x, size, 0.1, 0.5, 2), image)
    case("local_response_norm/signal", lambda x: F.local_response_norm(x, 2, 0.1), signal)
    case("lp_pool1d", lambda x: F.lp_pool1d(x, 2, 3), signal)
    case("lp_pool2d", lambda x: F.lp_pool2d(x, 2, (3, 2), stride=(2, 1), ceil_mode=True), image)
    case("lp_pool2d/3", lambda x: F.lp_pool2d(x.abs(), 3, 2), image)
    case("lp_pool3d", lambda x: F.lp_pool3d(x, 2, (2, 3, 2)), volume)
    case("max_pool3d", lambda x: F.max_pool3d(x, (3, 2, 3), (2, 1, 2), (1, 0, 1)), volume)
    case("max_pool3d/ceil", lambda x: F.max_pool3d(x[0], 2, ceil_mode=True, dilation=(1, 2, 1)), volume)
    case("avg_pool3d", lambda x: F.avg_pool3d(x, (3, 2, 3), (2, 1, 2), (1, 0, 1)), volume)
    case("avg_pool3d/inside", lambda x: F.avg_pool3d(x, 3, 2, 1, True, False), volume)
    case("avg_pool3d/divisor", lambda x: F.avg_pool3d(x[0], 2, divisor_override=3), volume)
    case("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (4, None, 2)), volume)
    case("adaptive_max_pool3d", lambda x: F.adaptive_max_pool3d(x, (4, None, 2)), volume)
    kernel, bias = numbers((4, 3, 3, 2, 3), 3), numbers((4,), 4)
    case("conv3d", F.conv3d, volume, kernel, bias)
    case("conv3d/options", lambda x, w: F.conv3d(x, w, None, (2, 1, 2), (1, 1, 0), (2, 1, 1), 3), volume, numbers((3, 1, 2, 2, 3), 5))
    small = volume[:, :, :3, :3, :2].contiguous()
    case("conv_transpose3d", F.conv_transpose3d, small, numbers((3, 4, 3, 2, 3), 3), bias)
    case("conv_transpose3d/options",
         lambda x, w: F.conv_transpose3d(x, w, None, (3, 1, 2), (1, 1, 0), (2, 0, 1), 3, (2, 1, 1)), small, numbers((3, 2, 2, 2, 3), 5))
    grid, theta = numbers((2, 3, 5, 2), 6) / 3, numbers((2, 2, 3), 7)
    grid[0, 0, 0, 0], grid[0, 1, 0, 1], grid[1, 2, 4] = nan, inf, torch.tensor([1.0, -1.0])
    for align in False, True:
        case(f"affine_grid/{align}", lambda t: F.affine_grid(t, (2, 1, 3, 4), align_corners=align), theta)
        for padding in "zeros", "border", "reflection":
            g = grid if padding == "zeros" else grid.nan_to_num(0.3, 0.5)
            for mode in "bilinear", "nearest":
                write(f"grid_sample/{mode}/{padding}/{align}", F.grid_sample(image, g, mode, padding, align))
    case("grid_sample", lambda x, g: F.grid_sample(x, g, align_corners=False), image, numbers((2, 3, 5, 2), 8) / 5)


for part in elementwise, activations, reductions, matrices, stacking, losses, arrays, more_losses, images:
    part()
# Names of their own, as ops.txt has some of the same.
cases.out[:] = [f"functions/{line}" for line in cases.out]
save(__file__, "functions.txt")
