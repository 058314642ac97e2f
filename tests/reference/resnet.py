#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/resnet.inc: the names and sizes of torchvision's resnet18, and the logits and first
losses that it has in double, from weights that the tests make by the same formula (test::number)."""

import math
import pathlib

import numpy
import torch
import torchvision


def numbers(seed, sizes):
    """test::numbers: from -4 to 4, in steps of 2^-21."""
    with numpy.errstate(over="ignore"):
        i = numpy.arange(math.prod(sizes), dtype=numpy.uint64)
        x = numpy.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64) + i * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        x = (x ^ (x >> numpy.uint64(31))) >> numpy.uint64(40)
    return torch.from_numpy(x.astype(numpy.float64) / 2**21 - 4).reshape(sizes)


def main():
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    model = torchvision.models.resnet18(num_classes=10)
    state = model.state_dict()
    for number, (name, value) in enumerate(state.items()):
        if value.dtype == torch.int64:
            continue
        random = numbers(number, value.shape)
        if value.dim() > 1:  # as He's, uniform
            random *= numpy.float32(math.sqrt(6 / value[0].numel()) / 4)
        elif name.endswith("bias") or name.endswith("mean"):
            random /= 16
        else:
            random = 1 + random / 16
        state[name] = random.to(torch.float32).to(torch.float64)
    model.load_state_dict(state)
    images, labels = numbers(1000, (4, 3, 48, 48)) / 4, torch.tensor([3, 7, 0, 9])

    lines = ["struct named_sizes {", "  const char* name;", "  std::vector<std::int64_t> sizes;", "};",
             "inline const std::vector<named_sizes> resnet_state{"]
    for name, value in state.items():
        lines.append(f'    {{"{name}", {{{", ".join(map(str, value.shape))}}}}},')
    lines.append("};")
    model.eval()
    values = {"resnet_logits": model(images).reshape(-1).tolist()}
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    losses = values["resnet_losses"] = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    for name, of in values.items():
        lines.append(f"inline const std::vector<double> {name}{{{', '.join(f'{v:.9g}' for v in of)}}};")

    text = "// SPDX-License-Identifier: Apache-2.0\n// Written by tests/reference/resnet.py.\n"
    text += "#pragma once\n\n#include <cstdint>\n#include <vector>\n\n// clang-format off\n"
    text += "namespace reference {\n" + "\n".join(lines) + "\n}  // namespace reference\n"
    (pathlib.Path(__file__).parents[1] / "data" / "resnet.inc").write_text(text)


main()
