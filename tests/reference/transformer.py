#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/transformer.inc: what PyTorch 2.15 gives in double for a transformer's decoder
and for nn.Transformer, on the numbers of tests/reference/optim.py."""

import pathlib

import torch
from torch import nn

from optim import lines, numbers, weighted_sum

SOURCE, TARGET, BATCH, FEATURES, HEADS, INNER = 3, 2, 2, 4, 2, 3
SHAPE = {"nhead": HEADS, "dim_feedforward": INNER, "dropout": 0.0}


def causal(n):
    return nn.Transformer.generate_square_subsequent_mask(n)


def sequence(length, seed, batch_first=False):
    sizes = (BATCH, length) if batch_first else (length, BATCH)
    return numbers((*sizes, FEATURES), seed).requires_grad_()


def padding(length, seed):
    """True for some, but for no sequence's first."""
    mask = numbers((BATCH, length), seed) > 0
    mask[:, 0] = False
    return mask


def check(name, module, inputs, **options):
    """The result; of its weighted sum the gradients of inputs, then of parameters."""
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(numbers(tuple(p.shape), 10 + i) / 4)
    y = module(*inputs, **options)
    of = list(inputs) + list(module.parameters())
    rows = [y.detach(), *torch.autograd.grad(weighted_sum(y), of)]
    text = ["{" + ", ".join(f"{v:.7g}" for v in t.reshape(-1).tolist()) + "}" for t in rows]
    lines.append(f"inline const std::vector<std::vector<double>> {name}{{\n  " + ",\n  ".join(text) + "};")


def main():
    torch.set_default_dtype(torch.double)
    tgt, memory = sequence(TARGET, 1), sequence(SOURCE, 2)
    check("decoder_layer", nn.TransformerDecoderLayer(FEATURES, **SHAPE, layer_norm_eps=1e-3),
          (tgt, memory), tgt_mask=numbers((TARGET, TARGET), 3),
          memory_mask=numbers((BATCH * HEADS, TARGET, SOURCE), 4),
          tgt_key_padding_mask=torch.tensor([[False, False], [False, True]]),
          memory_key_padding_mask=padding(SOURCE, 5))
    check("decoder_layer_first",
          nn.TransformerDecoderLayer(FEATURES, **SHAPE, activation="gelu", batch_first=True,
                                     norm_first=True, bias=False),
          (sequence(TARGET, 1, True), sequence(SOURCE, 2, True)), tgt_mask=causal(TARGET),
          tgt_is_causal=True)
    check("decoder",
          nn.TransformerDecoder(nn.TransformerDecoderLayer(FEATURES, **SHAPE, norm_first=True), 2,
                                nn.LayerNorm(FEATURES)),
          (tgt, memory), memory_key_padding_mask=padding(SOURCE, 5))
    check("transformer",
          nn.Transformer(FEATURES, num_encoder_layers=1, num_decoder_layers=1, batch_first=True,
                         **SHAPE),
          (sequence(SOURCE, 1, True), sequence(TARGET, 2, True)), tgt_mask=causal(TARGET),
          src_key_padding_mask=padding(SOURCE, 5), memory_key_padding_mask=padding(SOURCE, 5))
    out = pathlib.Path(__file__).parent.parent / "data" / "transformer.inc"
    out.write_text(
        "// SPDX-License-Identifier: Apache-2.0\n"
        "// Made by tests/reference/transformer.py with PyTorch.\n"
        "// clang-format off\n"
        "#include <vector>\n\nnamespace reference {\n" + "\n".join(lines) +
        "\n}  // namespace reference\n")


if __name__ == "__main__":
    main()
