# SPDX-License-Identifier: Apache-2.0
"""Writes images.txt: what PyTorch 2.15 computes for the cases of images.cpp.

    pip install torch==2.15.0 numpy && python images.py"""
import torch
import torch.nn as nn
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


def layer(name, module, sizes):
    """A training step: the result, gradients and buffers by their names; with buffers also evaluation."""
    for seed, p in enumerate(module.parameters()):
        p.data = numbers(p.shape, seed + 1)
    x = numbers(sizes).requires_grad_()
    y = module(x)
    y.backward(numbers(y.shape, 99))
    write(f"layer/{name}", y)
    write(f"layer/{name}/x", x.grad)
    for part, p in module.named_parameters():
        write(f"layer/{name}/{part}", p.grad)
    buffers = dict(module.named_buffers())
    for part, b in buffers.items():
        write(f"layer/{name}/{part}", b)
    if buffers:
        module.eval()
        write(f"layer/{name}/eval", module(x))


def convolutions():
    for name, module, sizes in (
        ("plain", nn.Conv2d(3, 4, 3), (2, 3, 5, 6)),
        ("stem", nn.Conv2d(3, 4, 7, 2, 3, bias=False), (1, 3, 9, 8)),
        ("one_pixel", nn.Conv2d(3, 5, 1), (2, 3, 1, 1)),
        ("larger_kernel", nn.Conv2d(2, 3, 5, padding=2), (1, 2, 2, 1)),
        ("beyond_kernel", nn.Conv2d(2, 3, 2, stride=3), (1, 2, 7, 8)),
        ("odd_groups", nn.Conv2d(9, 6, 3, padding=1, groups=3), (1, 9, 4, 5)),
        ("depthwise", nn.Conv2d(5, 5, 3, 2, 1, groups=5), (2, 5, 6, 5)),
        ("one_channel", nn.Conv2d(1, 1, 2), (1, 1, 3, 3)),
        ("uneven", nn.Conv2d(2, 3, (1, 4), (2, 1), (0, 2), (1, 2)), (1, 2, 5, 7)),
        ("same", nn.Conv2d(2, 3, (2, 3), padding="same", dilation=(3, 2)), (1, 2, 4, 5)),
        ("empty", nn.Conv2d(3, 4, 3), (0, 3, 5, 6)),
        ("line", nn.Conv1d(4, 6, 3, 2, 2, 2, 2), (2, 4, 9)),
        ("line_same", nn.Conv1d(2, 3, 4, padding="same", bias=False), (2, 2, 5)),
        ("mirrored", nn.Conv2d(2, 3, 3, 2, (2, 1), padding_mode="reflect"), (2, 2, 5, 4)),
        ("replicated", nn.Conv2d(2, 4, (2, 3), padding="same", dilation=(1, 2), groups=2, padding_mode="replicate"), (1, 2, 3, 2)),
        ("ring", nn.Conv1d(2, 3, 4, padding=3, bias=False, padding_mode="circular"), (2, 2, 3)),
        ("transposed", nn.ConvTranspose2d(4, 3, 3), (2, 4, 3, 2)),
        ("transposed_uneven", nn.ConvTranspose2d(4, 6, (3, 2), (2, 3), (1, 0), (1, 2), 2, dilation=(2, 1)), (2, 4, 3, 2)),
        ("transposed_line", nn.ConvTranspose1d(4, 6, 4, 3, 1, 2, 2, False), (1, 4, 5)),
    ):
        layer(name, module, sizes)


class Back(nn.Module):
    """Maxima, put back where they were in images of zeros."""

    def __init__(self, pool, unpool):
        super().__init__()
        self.pool, self.unpool = pool, unpool

    def forward(self, x):
        y, indices = self.pool(x)
        return self.unpool(y * y, indices, output_size=x.shape)


def pools():
    for name, module, sizes in (
        ("max", nn.MaxPool2d(2), (2, 3, 5, 4)),
        ("max_resnet", nn.MaxPool2d(3, 2, 1), (1, 2, 7, 8)),
        ("max_uneven", nn.MaxPool2d((2, 3), (3, 1), (1, 0), (1, 2), ceil_mode=True), (1, 2, 7, 8)),
        ("max_back", Back(nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)), (2, 3, 5, 4)),
        ("max_back_far", Back(nn.MaxPool2d((2, 3), (3, 4), 1, return_indices=True), nn.MaxUnpool2d((2, 3), (3, 4), 1)), (1, 2, 6, 8)),
        ("max_back_line", Back(nn.MaxPool1d(2, 3, return_indices=True), nn.MaxUnpool1d(2, 3)), (2, 3, 8)),
        ("max_back_shares", Back(nn.AdaptiveMaxPool2d((2, 3), return_indices=True), nn.MaxUnpool2d((2, 2))), (1, 2, 4, 6)),
        ("max_line", nn.MaxPool1d(3, 2, 1, ceil_mode=True), (2, 3, 8)),
        ("avg", nn.AvgPool2d(2), (2, 3, 5, 4)),
        ("avg_uneven", nn.AvgPool2d((2, 3), (1, 2), 1, True, False), (1, 2, 5, 6)),
        ("avg_divided", nn.AvgPool2d(3, divisor_override=5), (1, 2, 6, 6)),
        ("avg_line", nn.AvgPool1d(3, 2, 1, count_include_pad=False), (2, 3, 7)),
        ("adaptive_avg", nn.AdaptiveAvgPool2d(1), (2, 3, 5, 4)),
        ("adaptive_avg_uneven", nn.AdaptiveAvgPool2d((3, None)), (1, 2, 5, 4)),
        ("adaptive_avg_larger", nn.AdaptiveAvgPool2d((3, 4)), (1, 2, 2, 1)),
        ("adaptive_avg_line", nn.AdaptiveAvgPool1d(3), (2, 3, 7)),
        ("adaptive_max_line", nn.AdaptiveMaxPool1d(2), (2, 3, 5)),
        ("adaptive_max", nn.AdaptiveMaxPool2d((2, 3)), (1, 2, 5, 7)),
    ):
        layer(name, module, sizes)


def normalizations():
    layer("batch_norm1d", nn.BatchNorm1d(3), (4, 3, 5))
    layer("batch_norm2d", nn.BatchNorm2d(3, 1e-3, 0.3), (2, 3, 4, 5))
    layer("batch_norm_average", nn.BatchNorm2d(3, momentum=None), (2, 3, 4, 5))
    layer("batch_norm_plain", nn.BatchNorm2d(3, affine=False), (2, 3, 4, 5))
    layer("batch_norm_own", nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 4, 5))
    layer("group_norm", nn.GroupNorm(2, 4), (2, 4, 3, 5))
    layer("instance_norm", nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 5))
    layer("instance_norm_line", nn.InstanceNorm1d(3), (2, 3, 5))
    layer("instance_norm_tracked", nn.InstanceNorm2d(3, 1e-3, 0.3, True, True), (2, 3, 4, 5))
    layer("instance_norm_tracked_plain", nn.InstanceNorm1d(3, track_running_stats=True), (4, 3, 5))


def pool_functions():
    nan = float("nan")
    for name, sizes, kernel, options in (
        ("images", (2, 3, 7, 9), 3, dict(stride=2, padding=1)),
        ("whole", (2, 2, 4, 5), (4, 5), {}),
        ("far", (1, 2, 7, 8), 2, dict(stride=(3, 5))),
        ("ceil", (1, 2, 5, 6), 2, dict(stride=3, padding=1, ceil_mode=True)),
        ("beyond", (1, 1, 3, 4), 4, dict(stride=2, padding=2, ceil_mode=True)),
        ("pixels", (3, 1, 1, 1), 1, dict(stride=2)),
        ("empty", (0, 2, 4, 4), 2, {}),
    ):
        case(f"max_pool2d/{name}", lambda x: F.max_pool2d(x, kernel, **options), numbers(sizes))
        case(f"avg_pool2d/{name}", lambda x: F.avg_pool2d(x, kernel, **options), numbers(sizes))
        case(f"avg_pool2d/{name}/inside", lambda x: F.avg_pool2d(x, kernel, count_include_pad=False, **options), numbers(sizes))
    for name, sizes, kernel, options in (
        ("images", (2, 3, 7, 9), 3, dict(stride=2, padding=1)),
        ("channels", (1, 5, 4, 6), 2, dict(stride=1, padding=1, dilation=(1, 2), ceil_mode=True)),
    ):
        case(f"max_pool2d_with_indices/{name}", lambda x: F.max_pool2d(x, kernel, return_indices=True, **options)[1], numbers(sizes))
    case("max_pool2d_with_indices/special", lambda x: F.max_pool2d(x, 2, 1, return_indices=True)[1], torch.tensor([[[[1.0, nan, 3, 3], [nan, 2, 3, -0.0], [0, -0.0, -nan, 1]]]]))
    case("max_pool2d/dilated", lambda x: F.max_pool2d(x, 3, 1, 1, (2, 3)), numbers((1, 2, 9, 8)))
    case("max_pool2d/special", lambda x: F.max_pool2d(x, 2, 1), torch.tensor([[[[1.0, nan, 3, 3], [nan, 2, 3, -0.0], [0, -0.0, -nan, 1]]]]))
    case("avg_pool2d/divided", lambda x: F.avg_pool2d(x, (2, 3), 1, 1, divisor_override=5), numbers((1, 2, 4, 5)))
    case("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1, 2, True), numbers((2, 3, 11)))
    case("avg_pool1d", lambda x: F.avg_pool1d(x, 4, 3, 2, True, False), numbers((2, 3, 11)))
    for name, size in ("fewer", (3, 4)), ("one", 1), ("more", (10, 2)), ("kept", (None, 3)):
        case(f"adaptive_max_pool2d/{name}", lambda x: F.adaptive_max_pool2d(x, size), numbers((2, 3, 7, 5)))
        case(f"adaptive_avg_pool2d/{name}", lambda x: F.adaptive_avg_pool2d(x, size), numbers((2, 3, 7, 5)))
    case("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 4), numbers((2, 3, 9)))
    case("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 4), numbers((2, 3, 9)))


def resized():
    x = numbers((2, 2, 5, 7))
    for name, options in {
        "twice": dict(scale_factor=2),
        "size": dict(size=(3, 9)),
        "scale": dict(scale_factor=(1.3, 0.6)),
        "exact": dict(size=(8, 3), mode="nearest-exact"),
        "bilinear/twice": dict(scale_factor=2, mode="bilinear"),
        "bilinear/size": dict(size=(8, 3), mode="bilinear"),
        "bilinear/scale": dict(scale_factor=(1.3, 0.6), mode="bilinear"),
        "bilinear/corners": dict(scale_factor=(2, 0.5), mode="bilinear", align_corners=True),
        "bilinear/one": dict(size=1, mode="bilinear", align_corners=True),
        "bicubic/twice": dict(scale_factor=2, mode="bicubic"),
        "bicubic/size": dict(size=(8, 3), mode="bicubic"),
        "bicubic/scale": dict(scale_factor=(1.1, 0.6), mode="bicubic"),
        "bicubic/corners": dict(scale_factor=(2, 0.5), mode="bicubic", align_corners=True),
        "bicubic/one": dict(size=1, mode="bicubic", align_corners=True),
        "area": dict(size=(2, 3), mode="area"),
    }.items():
        case(f"interpolate/{name}", lambda t: F.interpolate(t, **options), x)
    case("interpolate/pixels", lambda t: F.interpolate(t, (3, 2), mode="bilinear"), numbers((2, 1, 1, 1)))
    case("interpolate/linear", lambda t: F.interpolate(t, 11, mode="linear"), x[0])
    for mode in "reflect", "replicate", "circular":
        case(f"pad/{mode}", lambda t: F.pad(t, (3, 1, 0, 2), mode=mode), x)
    case("pixel_shuffle", lambda t: F.pixel_shuffle(t, 2), numbers((2, 8, 3, 2)))
    case("pixel_unshuffle", lambda t: F.pixel_unshuffle(t, 2), numbers((2, 3, 4, 6)))
    case("unfold", lambda t: F.unfold(t, (3, 2), (1, 2), (2, 1), (2, 3)), x)
    case("fold", lambda t: F.fold(t, (5, 7), (3, 2), (1, 2), (2, 1), (2, 3)), numbers((2, 12, 12)))


for part in norms, convolutions, pools, normalizations, pool_functions, resized:
    part()
save(__file__, "images.txt")
