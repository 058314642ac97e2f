#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/modules.inc: what PyTorch 2.13 gives in double for the layers and losses that
programs include by name, on the numbers of tests/reference/optim.py."""

import pathlib

import torch
import torch.nn.functional as F
from torch.nn.utils import parametrizations

from optim import lines, loss_values, number, numbers, put, weighted_sum  # noqa: F401


def values(name, f, *sizes):
    """The result, then the gradient of its weighted sum for each input."""
    x = [numbers(s, i).requires_grad_() for i, s in enumerate(sizes)]
    y = f(*x)
    put(name, y.detach())
    for i, g in enumerate(torch.autograd.grad(weighted_sum(y), x)):
        put(f"{name}_grad_{i}", g)


def activations():
    values("prelu", F.prelu, (3, 4, 5), (4,))
    values("prelu_one", F.prelu, (3, 4), (1,))
    values("mish", F.mish, (3, 7))
    values("glu", F.glu, (3, 8))
    values("glu_rows", lambda x: F.glu(x, 0), (4, 3, 2))
    values("normalize", F.normalize, (3, 7))
    values("normalize_p", lambda x: F.normalize(x, 3, 0), (3, 7))


def losses():
    x, y, z = (numbers((7, 5), i) for i in range(3))
    sign = torch.tensor([1.0, -1, -1, 1, -1, 1, -1])
    triplet = F.triplet_margin_loss
    loss_values("triplet", lambda v, r: triplet(v, y, z, reduction=r), x)
    loss_values("triplet_swap", lambda v, r: triplet(v, y, z, 2.5, 1, swap=True, reduction=r), x)
    each = torch.where(torch.arange(35).reshape(7, 5) % 3 == 1, -1.0, 1.0)
    loss_values("ranking", lambda v, r: F.margin_ranking_loss(v, y, each, 0.5, reduction=r), x)
    loss_values("cosine_embedding",
                lambda v, r: F.cosine_embedding_loss(v, y, sign, 0.1, reduction=r), x)
    var = y * y
    var[0] = 1e-9
    loss_values("gaussian", lambda v, r: F.gaussian_nll_loss(v, z, var, reduction=r), x)
    loss_values("gaussian_full", lambda v, r: F.gaussian_nll_loss(
        v, z, var[:, :1], full=True, eps=0.1, reduction=r), x)
    loss_values("gaussian_var", lambda v, r: F.gaussian_nll_loss(x, z, v, eps=0.5, reduction=r), var)
    counts = (y * y).round()
    loss_values("poisson", lambda v, r: F.poisson_nll_loss(v, counts, reduction=r), x)
    loss_values("poisson_full", lambda v, r: F.poisson_nll_loss(
        v, counts, log_input=False, full=True, reduction=r), x * x)


def pads():
    n = torch.nn
    x = numbers((2, 3, 4, 5))
    put("reflection_pad", n.ReflectionPad2d((1, 2, 3, 0))(x))
    put("replication_pad", n.ReplicationPad3d((1, 2, 0, 1, 2, 0))(x))
    put("circular_pad", n.CircularPad1d(2)(x[0, 0]))
    put("constant_pad", n.ConstantPad2d((1, -2, -1, 2), 0.5)(x))


def norms():
    x = numbers((4, 7), 5)
    for name, make in [("weight_norm", parametrizations.weight_norm),
                       ("spectral_norm", parametrizations.spectral_norm)]:
        layer = torch.nn.Linear(7, 3)
        with torch.no_grad():
            layer.weight.copy_(numbers((3, 7), 1))
            layer.bias.copy_(numbers((3,), 2))
        layer = make(layer)
        p = layer.parametrizations.weight
        with torch.no_grad():
            if name == "weight_norm":
                p.original0.copy_(numbers((3, 1), 3))
            else:
                p[0]._u.copy_(F.normalize(numbers((3,), 3), dim=0))
                p[0]._v.copy_(F.normalize(numbers((7,), 4), dim=0))
        y = layer(x)
        put(name, y.detach())
        weighted_sum(y).backward()
        if name == "weight_norm":
            put("weight_norm_grad_g", p.original0.grad)
            put("weight_norm_grad_v", p.original1.grad)
        else:
            put("spectral_norm_grad", p.original.grad)
            put("spectral_norm_u", p[0]._u)
            put("spectral_norm_v", p[0]._v)
            put("spectral_norm_eval", layer.eval()(x).detach())
    kernel = torch.nn.Conv1d(2, 3, 4)
    with torch.no_grad():
        kernel.weight.copy_(numbers((3, 2, 4), 1))
        kernel.bias.copy_(numbers((3,), 2))
    kernel = parametrizations.weight_norm(kernel)
    put("weight_norm_conv_g", kernel.parametrizations.weight.original0.detach())
    with torch.no_grad():
        kernel.parametrizations.weight.original0.copy_(numbers((3, 1, 1), 3))
    put("weight_norm_conv", kernel(numbers((2, 2, 9), 4)).detach())


if __name__ == "__main__":
    for part in (activations, losses, pads, norms):
        part()
    out = pathlib.Path(__file__).parent.parent / "data" / "modules.inc"
    out.write_text(
        "// SPDX-License-Identifier: Apache-2.0\n"
        "// Made by tests/reference/modules.py with PyTorch.\n"
        "// clang-format off\n"
        "#include <vector>\n\nnamespace reference {\n" + "\n".join(lines) +
        "\n}  // namespace reference\n")
