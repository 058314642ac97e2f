# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/decoder_small.inc: logits and the first 6 losses of the decoder `small` as
PyTorch trains it, eagerly, with AdamW. tests/nn/decoder_small.cpp compares ours with them."""

import pathlib

import torch

import decoder_task as decoder
from decoder_torch import make_model, module_step

STEPS, STRIDE = 6, 6421  # a prime: logits of all positions and of all parts of the vocabulary


def main():
    torch.set_flush_denormal(False)
    c = decoder.CONFIGS["small"]
    data = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in decoder.text(c, STEPS)]
    lines = []

    def put(name, values):
        body = ", ".join(f"{v:.9g}" for v in values)
        lines.append(f"inline const std::vector<double> {name}{{{body}}};")

    model, _ = make_model(c)
    with torch.no_grad():
        put("small_logits", model(data[0][0]).flatten()[::STRIDE].tolist())
    lines.append(f"inline constexpr std::int64_t small_stride = {STRIDE};")
    reset, step = module_step(c, "fused", None)
    reset()
    put("small_losses", [step(*batch).item() for batch in data])

    text = f"""// SPDX-License-Identifier: Apache-2.0
// Written by bench/peers/decoder_reference.py with PyTorch {torch.__version__.split("+")[0]}.
#pragma once

#include <cstdint>
#include <vector>

// clang-format off
namespace reference {{
{chr(10).join(lines)}
}}  // namespace reference
"""
    tests = pathlib.Path(__file__).resolve().parents[2] / "tests"
    (tests / "data" / "decoder_small.inc").write_text(text)


main()
