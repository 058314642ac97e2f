#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/decoder.inc: logits and the first losses of two tiny decoders that PyTorch 2.13
trains with AdamW, from weights that the tests make by the same formula (test::number)."""

import math
import pathlib

import torch
import torch.nn.functional as F

HIDDEN, LAYERS, HEADS, VOCABULARY, BATCH, SEQUENCE = 16, 2, 4, 11, 2, 6
MASK = 2**64 - 1


def raw(seed, i):
    x = ((seed + 1) * 0x9E3779B97F4A7C15 + i * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class Weights:
    """Parameter number n, in the order of the model's members: numbers with seed n, over 16."""

    def __init__(self):
        self.all = []

    def make(self, *sizes, near=0.0):
        seed = len(self.all)
        n = math.prod(sizes)
        values = [near + ((raw(seed, i) >> 40) / (1 << 24) * 8 - 4) / 16 for i in range(n)]
        self.all.append(torch.tensor(values, dtype=torch.float32).reshape(sizes).requires_grad_())
        return self.all[-1]


def rotate(x, theta):
    half = x.shape[-1] // 2
    frequency = theta ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = torch.arange(x.shape[-2], dtype=torch.float32)[:, None] * frequency
    angle = torch.cat((angle, angle), -1)
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * angle.cos() + turned * angle.sin()


class Decoder:
    """Llama-like: RMSNorm, rotary positions, 2 key/value heads, SwiGLU. GPT-like: LayerNorm,
    learned positions, GELU, biases, the head tied to the embedding."""

    def __init__(self, gpt):
        w = Weights()
        self.gpt, self.weights = gpt, w
        kv = HIDDEN if gpt else HIDDEN // 2
        inner = 4 * HIDDEN if gpt else 24

        def norm():
            weight = w.make(HIDDEN, near=1.0)
            if gpt:
                bias = w.make(HIDDEN)
                return lambda x: F.layer_norm(x, (HIDDEN,), weight, bias, 1e-5)
            return lambda x: F.rms_norm(x, (HIDDEN,), weight, 1e-6)

        def linear(inputs, outputs, bias=gpt):
            weight = w.make(outputs, inputs)
            b = w.make(outputs) if bias else None
            return lambda x: F.linear(x, weight, b)

        self.tokens = w.make(VOCABULARY, HIDDEN)
        self.positions = w.make(8, HIDDEN) if gpt else None
        self.layers = []
        for _ in range(LAYERS):
            parts = [norm(), linear(HIDDEN, HIDDEN), linear(HIDDEN, kv), linear(HIDDEN, kv),
                     linear(HIDDEN, HIDDEN), norm(), linear(HIDDEN, inner)]
            if not gpt:
                parts.append(linear(HIDDEN, inner))
            parts.append(linear(inner, HIDDEN))
            self.layers.append(parts)
        self.norm = norm()
        self.head = (lambda x: F.linear(x, self.tokens)) if gpt else linear(HIDDEN, VOCABULARY)

    def attention(self, x, q, k, v, o):
        def split(y):
            return y.reshape(BATCH, SEQUENCE, -1, HIDDEN // HEADS).transpose(1, 2)

        q, k, v = split(q(x)), split(k(x)), split(v(x))
        if not self.gpt:
            q, k = rotate(q, 10000.0), rotate(k, 10000.0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return o(y.transpose(1, 2).reshape(BATCH, SEQUENCE, HIDDEN))

    def __call__(self, tokens):
        h = F.embedding(tokens, self.tokens)
        if self.gpt:
            h = h + self.positions[:SEQUENCE]
        for first, q, k, v, o, second, *mlp in self.layers:
            h = h + self.attention(first(h), q, k, v, o)
            x = second(h)
            if self.gpt:
                h = h + mlp[1](F.gelu(mlp[0](x)))
            else:
                h = h + mlp[2](F.silu(mlp[0](x)) * mlp[1](x))
        return self.head(self.norm(h))


def batch(step):
    """Token number i of step s: (7 i i + 3 i + 5 s) mod the vocabulary; the target is the next."""
    at = torch.arange(BATCH * SEQUENCE + 1)
    text = (7 * at * at + 3 * at + 5 * step) % VOCABULARY
    return text[:-1].reshape(BATCH, SEQUENCE), text[1:].reshape(BATCH, SEQUENCE)


def main():
    lines = []

    def put(name, values):
        body = ", ".join(f"{v:.9g}" for v in values)
        lines.append(f"inline const std::vector<double> {name}{{{body}}};")

    for name, gpt in (("llama", False), ("gpt", True)):
        model = Decoder(gpt)
        put(name + "_logits", model(batch(0)[0]).reshape(-1).tolist())
        optimizer = torch.optim.AdamW(model.weights.all, lr=0.01)
        losses = []
        for step in range(5):
            tokens, targets = batch(step)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(tokens).reshape(-1, VOCABULARY), targets.reshape(-1))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        put(name + "_losses", losses)

    text = "// SPDX-License-Identifier: Apache-2.0\n// Written by tests/reference/decoder.py.\n"
    text += "#pragma once\n\n#include <vector>\n\n// clang-format off\n"
    text += "namespace reference {\n" + "\n".join(lines) + "\n}  // namespace reference\n"
    (pathlib.Path(__file__).parents[1] / "data" / "decoder.inc").write_text(text)


main()
