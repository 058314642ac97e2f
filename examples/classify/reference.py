#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes reference.txt: what torchvision's ResNet-18 says of the pictures, and with the weights, that test_files.cpp writes.

    pip install torch==2.15.0 torchvision==0.29.2 pillow==13.0.0 && python examples/classify/reference.py"""
import math
import pathlib

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision import transforms as T


def numbers(count, seed):
    """As numbers() of test_files.cpp: from -1 to 1, and exact in float32."""
    with np.errstate(over="ignore"):
        x = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed * 0xBF58476D1CE4E5B9 % 2**64)
        x = (x ^ (x >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)
    return (x >> np.uint64(41)).astype(np.float64) / 2**22 - 1


def model(classes):
    net = torchvision.models.resnet18(num_classes=classes)
    state = net.state_dict()
    for number, (name, value) in enumerate(state.items()):
        if value.dtype == torch.int64:
            continue
        u = torch.from_numpy(numbers(value.numel(), number)).reshape(value.shape)
        if value.dim() > 1:
            u *= np.float32(math.sqrt((12 if name == "fc.weight" else 3) / value[0].numel()))
        elif name.endswith(("bias", "mean")):
            u /= 8
        else:
            u = 1 + u / 4
        state[name] = u.to(torch.float32)
    net.load_state_dict(state)
    return net.eval()


def picture(height, width, channels):
    y, x, c = np.ogrid[:height, :width, :channels]
    pixels = ((x + 2 * y + 40 * c) // 3 % 256 ^ (x // 16 * 37 & 127)).astype(np.uint8)
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)


def main():
    lines = []
    for classes, name, of, size in [(1000, "colours", (240, 320, 3), 224), (1000, "grey", (300, 200, 1), 224),
                                    (1000, "colours", (240, 320, 3), 64), (10, "colours", (240, 320, 3), 64)]:
        view = T.Compose([T.Resize(size * 8 // 7), T.CenterCrop(size), T.ToTensor(), T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
        with torch.no_grad():
            likelihoods = model(classes)(view(picture(*of).convert("RGB"))[None]).double().softmax(1)[0]
        for value, i in zip(*likelihoods.topk(5)):
            lines.append(f"{classes} {name} {size} {100 * value:.2f} label {i}")
    (pathlib.Path(__file__).parent / "reference.txt").write_text("\n".join(lines) + "\n")


main()
