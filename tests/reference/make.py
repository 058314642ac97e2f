# SPDX-License-Identifier: Apache-2.0
"""Writes ops.txt: what PyTorch 2.15 computes for the cases of elementwise.cpp, reduce.cpp, shape.cpp and losses.cpp.

    pip install torch==2.15.0 numpy && python make.py"""
import torch
import torch.nn.functional as F

from cases import case, inf, nan, numbers, save, special, write


def unary(name, f, low=None):
    """Odd sizes, one element, none, read through a transpose, and special values. low: only inputs above it."""
    shift = (lambda x: x) if low is None else (lambda x: x.abs() + low)
    case(f"{name}/odd", f, shift(numbers((7, 5))))
    case(f"{name}/one", f, shift(numbers((1, 1), 1)))
    case(f"{name}/empty", f, shift(numbers((0, 3))))
    case(f"{name}/transposed", lambda x: f(x.t()), shift(numbers((5, 3), 2)))
    write(f"{name}/special", f(special))


def binary(name, f, low=None, special=special):
    shift = (lambda x: x) if low is None else (lambda x: x.abs() + low)
    case(f"{name}/same", f, shift(numbers((3, 5))), numbers((3, 5), 1))
    case(f"{name}/broadcast", f, shift(numbers((3, 1, 5))), numbers((4, 1), 1))
    case(f"{name}/scalar", f, shift(numbers((3, 5))), numbers((), 1))
    case(f"{name}/empty", f, shift(numbers((0, 5))), numbers((1, 5), 1))
    case(f"{name}/transposed", lambda a, b: f(a.t(), b.t()), shift(numbers((5, 3))), numbers((1, 3), 1))
    a, b = special.repeat_interleave(len(special)), special.repeat(len(special))
    write(f"{name}/special", f(a, b))


def elementwise():
    for name in "abs neg exp expm1 sin cos tanh sigmoid erf sign floor ceil round trunc square relu".split():
        unary(name, getattr(torch, name))
    for name, low in ("log", 0.1), ("log1p", 0.1), ("sqrt", 0.1), ("rsqrt", 0.1), ("reciprocal", 0.1):
        unary(name, getattr(torch, name), low)
    # PyTorch's vectorised gelu makes NaN of infinity, its scalar one infinity.
    unary("gelu", lambda x: torch.where(x == inf, x, F.gelu(x)))
    unary("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"))
    unary("silu", F.silu)
    unary("softplus", F.softplus)
    unary("leaky_relu", lambda x: F.leaky_relu(x, 0.1))
    unary("elu", F.elu)
    unary("hardtanh", F.hardtanh)
    for name in "relu6", "hardsigmoid", "hardswish":
        unary(name, getattr(F, name))
        case(f"{name}/corners", getattr(F, name), torch.tensor([-3.0, 0, 3, 6]))
    unary("clip", lambda x: torch.clip(x, -1.5, 2))
    unary("pow3", lambda x: x ** 3)
    for name in "isnan", "isinf", "isfinite":
        write(f"{name}/special", getattr(torch, name)(special))
    binary("add", torch.add)
    binary("sub", torch.sub)
    binary("mul", torch.mul)
    binary("div", torch.div)
    # Quotients that no float holds are left out: PyTorch makes NaN of them.
    binary("remainder", torch.remainder, special=torch.tensor([nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 88.0, 3.0]))
    binary("maximum", torch.maximum)
    binary("minimum", torch.minimum)
    binary("pow", torch.pow, 0.1)
    binary("atan2", torch.atan2)
    case("addcmul", lambda x, a, b: torch.addcmul(x, a, b, value=0.5), numbers((3, 1)), numbers((5,), 1), numbers((3, 5), 2))
    case("addcdiv", lambda x, a, b: torch.addcdiv(x, a, b, value=-2), numbers((3, 1)), numbers((5,), 1), numbers((3, 5), 2))
    for name in "eq", "ne", "lt", "le", "gt", "ge":
        binary(name, getattr(torch, name))
    a, b = numbers((37,), 0, torch.int64), numbers((37,), 1, torch.int64)
    b[b == 0] = 3
    write("remainder/integers", torch.remainder(a, b))
    write("div/integers", torch.div(a, b, rounding_mode="trunc"))
    c = numbers((3, 5), 3, torch.bool)
    case("where/broadcast", lambda x, y: torch.where(c, x, y), numbers((3, 1)), numbers((5,), 1))
    case("lerp", lambda x, y: torch.lerp(x, y, 0.3), numbers((3, 5)), numbers((3, 5), 1))


strange = torch.tensor([[1.0, nan, 3, 2], [inf, 2, -inf, 1], [-0.0, 0, -0.0, 0], [inf, inf, -1, 2], [-inf] * 4, [-0.0] * 4])


def rows():
    """Functions along an axis: of special values, and read through a transpose."""
    for name, f in {
        "sum": lambda t: t.sum(1), "mean": lambda t: t.mean(1), "prod": lambda t: t.prod(1),
        "amax": lambda t: t.amax(1), "amin": lambda t: t.amin(1), "logsumexp": lambda t: t.logsumexp(1),
        "argmax": lambda t: t.argmax(1), "argmin": lambda t: t.argmin(1), "norm": lambda t: torch.linalg.vector_norm(t, dim=1),
        "var": lambda t: t.var(1), "softmax": lambda t: F.softmax(t, 1), "log_softmax": lambda t: F.log_softmax(t, 1),
        "cumsum": lambda t: t.cumsum(1), "cumprod": lambda t: t.cumprod(1), "median": lambda t: t.median(1)[0],
        "sort": lambda t: torch.sort(t, dim=1, stable=True)[0], "order": lambda t: torch.sort(t, dim=1, stable=True)[1],
    }.items():
        write(f"{name}/strange", f(strange))
        case(f"{name}/transposed", lambda t: f(t.transpose(0, 2)), numbers((3, 7, 5)))


def second(y, t):
    """A gradient that can be differentiated once more."""
    return torch.autograd.grad(y, t, numbers(y.shape, 7), create_graph=True)[0]


def reduce():
    rows()
    x = numbers((3, 7, 5))
    for name in "sum", "mean", "prod", "amax", "amin", "logsumexp", "var", "std", "norm":
        f = torch.linalg.vector_norm if name == "norm" else getattr(torch, name)
        for axes, label in ((0,), "0"), ((1,), "1"), ((-1,), "last"), ((0, 2), "02"), ((0, 1, 2), "all"):
            if name == "prod":
                if len(axes) > 1:
                    continue
                axes = axes[0]
            case(f"{name}/{label}", lambda t: f(t, dim=axes), x)
        case(f"{name}/one", lambda t: f(t, dim=0), numbers((2, 1), 4)) if name not in ("var", "std") else None
    for name in "amax", "amin":
        case(f"{name}/ties", lambda t: getattr(torch, name)(t, dim=1), torch.tensor([[1.0, 3, 3, 1], [2, 2, 2, 2]]))
        write(f"{name}/nan", getattr(torch, name)(torch.tensor([[1.0, nan, 3], [inf, 2, -inf]]), dim=1))
    case("prod/zeros", lambda t: torch.prod(t, dim=1), torch.tensor([[1.0, 2, 3], [0, 2, 3], [0, 2, 0]]))
    case("norm/zeros", lambda t: torch.linalg.vector_norm(t, dim=1), torch.tensor([[0.0, 0, 0], [3, 0, 4]]))
    write("logsumexp/infinite", torch.logsumexp(torch.tensor([[-inf, -inf], [0.0, inf], [88, 89]]), dim=1))
    write("sum/empty", torch.sum(numbers((0, 3)), dim=0))
    write("prod/empty", torch.prod(numbers((0, 3)), dim=0))
    b = numbers((3, 5), 3, torch.bool)
    write("any", b.any(dim=1))
    write("all", b.all(dim=1))
    for name in "argmax", "argmin":
        write(f"{name}/1", getattr(torch, name)(x, dim=1))
        write(f"{name}/last", getattr(torch, name)(x, dim=-1))
    for name in "softmax", "log_softmax":
        case(f"{name}/last", lambda t: getattr(F, name)(t, dim=-1), x)
        case(f"{name}/1", lambda t: getattr(F, name)(t, dim=1), x)
    case("cumsum/1", lambda t: torch.cumsum(t, 1), x)
    zeros = torch.tensor([[1.0, -2, 3, 0.5], [0, 2, 3, 4], [2, 0, 5, 0]])
    for axis in 0, 1:
        case(f"cumprod/{axis}", lambda t: torch.cumprod(t, axis), x)
        case(f"cumprod/zeros{axis}", lambda t: torch.cumprod(t, axis), zeros)
        case(f"prod/second{axis}", lambda t: second(torch.prod(t, axis), t), zeros)
        case(f"cumprod/second{axis}", lambda t: second(torch.cumprod(t, axis), t), zeros)
    case("cumprod/empty", lambda t: torch.cumprod(t, 0), numbers((0, 3)))
    write("cumprod/integers", torch.cumprod(numbers((3, 40), 2, torch.int64), 1))
    for axis in 0, 1, -1:
        case(f"median/{axis}", lambda t: torch.median(t, axis)[0], x)
        write(f"median/index{axis}", torch.median(x, axis)[1])
    ties = torch.tensor([[1.0, 3, 3, 5, 3], [2, 2, 2, 2, 7]])
    case("median/all", torch.median, x)
    case("median/ties", torch.median, ties)
    case("median/odd", torch.median, numbers((7,), 3))
    case("median/nan", torch.median, torch.tensor([1.0, nan, 2, nan]))
    write("median/integers", torch.median(numbers((4, 10), 2, torch.int64), 1)[0])
    write("cdist/0", torch.cdist(numbers((2, 4, 5)), numbers((3, 5), 1), 0))  # its gradient is 0
    for p in 1, 2, 3, inf:
        case(f"cdist/{p:g}", lambda a, b: torch.cdist(a, b, p), numbers((2, 4, 5)), numbers((3, 5), 1))
    case("cosine_similarity", F.cosine_similarity, numbers((3, 5, 4)), numbers((5, 1), 1).expand(5, 4))
    case("cosine_similarity/last", lambda a, b: F.cosine_similarity(a, b, -1), numbers((3, 1, 4)), numbers((5, 4), 1))
    case("matmul/transposed", lambda a, b: a.t() @ b.t(), numbers((7, 5)), numbers((3, 7), 1))
    case("matmul/matrices", torch.matmul, numbers((5, 7)), numbers((7, 3), 1))
    case("matmul/batch", torch.matmul, numbers((2, 1, 5, 7)), numbers((4, 7, 3), 1))
    case("matmul/vector", torch.matmul, numbers((5, 7)), numbers((7,), 1))
    case("matmul/nothing", torch.matmul, numbers((2, 0)), numbers((0, 3), 1))
    case("einsum/batched", lambda a, b: torch.einsum("bij,bkj->bik", a, b), numbers((2, 3, 5)), numbers((2, 4, 5), 1))
    for name, formula, a, b in (
        ("batches", "...ij,...jk->...ik", (5, 1, 2, 3), (4, 3, 2)),
        ("implied", "...ij,...jk", (2, 2, 3), (3, 4)),
        ("dropped", "...ij,jk->ik", (2, 3, 4), (4, 2)),
        ("moved", "i...j,j->...i", (2, 3, 4), (4,)),
        ("ones", "ij,jk->ik", (2, 1), (3, 4)),
        ("one_row", "bij,bij->bi", (4, 1, 3), (1, 2, 3)),
        ("diagonal", "...ii,...->...i", (2, 3, 3), (1,)),
    ):
        case(f"einsum/{name}", lambda a, b: torch.einsum(formula, a, b), numbers(a), numbers(b, 1))
    case("einsum/outer", lambda a, b: torch.einsum("i,j->ij", a, b), numbers((3,)), numbers((4,), 1))


def shape():
    x = numbers((4, 7, 5))
    case("transpose", lambda t: t.transpose(0, 2), x)
    case("permute", lambda t: t.permute(2, 0, 1), x)
    case("narrow", lambda t: t.narrow(1, 2, 3), x)
    case("slice", lambda t: t[:, 1:6:2], x)
    case("slice/negative", lambda t: t[:, -3:], x)
    case("select", lambda t: t.select(-1, -2), x)
    case("flip", lambda t: t.flip(0, 2), x)
    case("roll", lambda t: t.roll(2, 1), x)
    case("cat", lambda a, b: torch.cat([a, b, a], 1), numbers((2, 3)), numbers((2, 4), 1))
    case("stack", lambda a, b: torch.stack([a, b], 1), numbers((2, 3)), numbers((2, 3), 1))
    case("pad", lambda t: F.pad(t, (1, 2, 0, 3), value=0.5), numbers((2, 3)))
    case("repeat", lambda t: t.repeat(2, 3), numbers((2, 3)))
    case("tril", lambda t: t.tril(-1), numbers((5, 7)))
    case("triu", lambda t: t.triu(1), numbers((5, 7)))
    index = numbers((4, 3, 5), 5, torch.int64).abs() % 7
    case("gather", lambda t: t.gather(1, index), x)
    case("scatter_add", lambda t, s: t.scatter_add(1, index, s), x, numbers((4, 3, 5), 6))
    small = numbers((3, 9, 2), 5, torch.int64).abs() % 7
    apart = torch.argsort(numbers((3, 5, 2), 5), 1)
    large = numbers((5, 9, 4), 6)
    case("gather/small", lambda t: t.gather(1, small), x)
    write("scatter_add/large", x.scatter_add(1, small, large))  # PyTorch has no gradient for larger sources
    case("scatter_add/small", lambda t, s: t.scatter_add(1, small, s), x, numbers((3, 9, 2), 6))
    case("scatter/small", lambda t, s: t.scatter(1, apart, s), x, numbers((3, 5, 2), 6))
    write("scatter/large", x.scatter(1, apart, large))
    write("scatter/number", x.scatter(-1, small[:, :6] % 5, 0.5))
    case("take_along_dim", lambda t: torch.take_along_dim(t, small[:1, :, :1], 1), x)
    case("gather/transposed", lambda t: t.transpose(0, 2).gather(1, small), numbers((5, 7, 4)))
    case("index_select", lambda t: t.index_select(1, torch.tensor([0, 6, 3, 3])), x)
    i, j = torch.tensor([[3], [0]]), torch.tensor([1, 6, 4])
    case("index_put", lambda t, v: torch.index_put(t, (i, j), v), x, numbers((2, 3, 5), 6))
    j = torch.tensor([1, 4, 1])
    case("index_put/accumulate", lambda t, v: torch.index_put(t, (i, j), v, True), x, numbers((3, 1), 6))
    boundaries = torch.sort(numbers((4, 3), 7), 1)[0]
    for right in False, True:
        write(f"searchsorted/{right:d}", torch.searchsorted(boundaries, x[:, :, 0], right=right))
        write(f"bucketize/{right:d}", torch.bucketize(numbers((9,), 8, torch.int64), torch.tensor([-6, -3, -3, 1, 2]), right=right))
    write("one_hot", F.one_hot(torch.tensor([0, 2, 1]), 4))
    write("eye", torch.eye(3, 4))
    write("linspace", torch.linspace(-1, 2, 7))
    write("arange", torch.arange(1.0, 4.0, 0.5))
    values, order = torch.sort(x, dim=1, stable=True)
    write("sort/order", order)
    case("sort/values", lambda t: torch.sort(t, dim=1, stable=True)[0], x)
    case("topk/values", lambda t: torch.topk(t, 3, dim=1)[0], x)
    case("topk/smallest", lambda t: torch.topk(t, 3, dim=0, largest=False)[0], x)


def losses():
    x, target = numbers((6, 5)), torch.tensor([0, 1, 4, 2, 2, 3])
    case("cross_entropy", lambda t: F.cross_entropy(t, target), x)
    case("cross_entropy/smooth", lambda t: F.cross_entropy(t, target, label_smoothing=0.1), x)
    case("cross_entropy/ignore", lambda t: F.cross_entropy(t, target, ignore_index=2), x)
    case("cross_entropy/extreme", lambda t: F.cross_entropy(t * 100, target), x)
    case("nll_loss", lambda t: F.nll_loss(t, target), x)
    a, b = numbers((3, 5)), numbers((3, 5), 1)
    for name in "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss":
        case(name, lambda t: getattr(F, name)(t, b), a)
    p = torch.sigmoid(b).detach()
    case("bce_with_logits", lambda t: F.binary_cross_entropy_with_logits(t, p), a * 20)
    case("kl_div", lambda t: F.kl_div(F.log_softmax(t, -1), F.softmax(b, -1), reduction="batchmean"), a)


for part in elementwise, reduce, shape, losses:
    part()
save(__file__, "ops.txt")
