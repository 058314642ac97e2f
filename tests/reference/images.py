# SPDX-License-Identifier: Apache-2.0
"""Writes images.txt: what PyTorch 2.15 computes for the cases of images.cpp.

    pip install torch==2.15.0 numpy && python images.py"""
import torch
import torch.nn.functional as F

from cases import case, numbers, save, write


def batch_norm(name, sizes):
    """Training, which moves running statistics, and evaluation with these."""
    channels = (sizes[1],)
    x, weight, bias = numbers(sizes), numbers(channels, 1), numbers(channels, 2)
    mean, var = numbers(channels, 3), numbers(channels, 4).abs()

    def train(x, weight, bias):
        return F.batch_norm(x, mean, var, weight, bias, True, 0.3)

    before = mean.clone(), var.clone()
    train(x, weight, bias)
    write(f"batch_norm/{name}/mean", mean)
    write(f"batch_norm/{name}/var", var)
    case(f"batch_norm/{name}", train, x, weight, bias)
    mean, var = before
    case(f"batch_norm/{name}/eval", lambda x, w, b: F.batch_norm(x, mean, var, w, b, False, 0.3, 1e-3), x, weight, bias)


def norms():
    for name, sizes in {
        "rows": (5, 4), "lines": (2, 3, 5), "images": (3, 4, 5, 2), "pixels": (6, 3, 1, 1), "one_channel": (2, 1, 1, 7), "one_image": (1, 2, 3, 1),
    }.items():
        batch_norm(name, sizes)
    for name, sizes, groups in (
        ("rows", (3, 8), 2), ("lines", (2, 6, 5), 2), ("images", (2, 6, 3, 5), 3), ("one_group", (2, 3, 2, 2), 1), ("each", (2, 3, 5, 1), 3),
        ("pixels", (2, 6, 1, 1), 2), ("empty", (0, 6, 2, 2), 2),
    ):
        parameters = numbers(sizes[1:2], 1), numbers(sizes[1:2], 2)
        case(f"group_norm/{name}", lambda x: F.group_norm(x, groups), numbers(sizes))
        case(f"group_norm/{name}/affine", lambda x, w, b: F.group_norm(x, groups, w, b, 1e-3), numbers(sizes), *parameters)
    for name, sizes in ("lines", (2, 3, 7)), ("images", (2, 3, 4, 5)), ("one_channel", (3, 1, 2, 1)):
        parameters = numbers(sizes[1:2], 1), numbers(sizes[1:2], 2)
        case(f"instance_norm/{name}", F.instance_norm, numbers(sizes))
        case(f"instance_norm/{name}/affine", lambda x, w, b: F.instance_norm(x, None, None, w, b, eps=1e-3), numbers(sizes), *parameters)


for part in norms,:
    part()
save(__file__, "images.txt")
