# SPDX-License-Identifier: Apache-2.0
"""The decoders that every contestant trains, as in decoder_task.hpp and nn/decoder.hpp."""

import dataclasses

import numpy as np

from task import hashed, uniform


@dataclasses.dataclass(frozen=True)
class Config:
    hidden: int
    intermediate: int
    vocabulary: int
    heads: int
    kv_heads: int
    rows: int  # of a batch
    sequence: int
    optimizer: str
    rotary_theta: int = 0
    causal: bool = False
    layers: int = 2
    gpt: bool = False  # LayerNorm, learned positions, GELU, biases, the embedding as the head

    @property
    def eps(self):
        return 1e-5 if self.gpt else 1e-6

    @property
    def head_size(self):
        return self.hidden // self.heads


CONFIGS = {
    "small": Config(512, 1376, 3200, 8, 8, 4, 128, "AdamW"),
    "char": Config(128, 512, 65, 4, 4, 12, 64, "AdamW", causal=True, layers=4, gpt=True),
    "seed": Config(1024, 32768, 3200, 8, 4, 2, 512, "Adam"),
    "text": Config(512, 1376, 3200, 8, 8, 1, 16, "AdamW", rotary_theta=10000, causal=True),
}
LEARNING_RATE, BETA1, BETA2, EPS = 1e-4, 0.9, 0.999, 1e-8
DECAY = {"AdamW": 0.01, "Adam": 0.0}
BATCHES, WARM = 16, 2


def shapes(c):
    """(name, shape) of every parameter, in the order of the model's members."""
    kv = c.kv_heads * c.head_size

    def part(name, *shape):
        yield name + ".weight", shape
        if c.gpt:
            yield name + ".bias", shape[:1]

    yield "embed_tokens.weight", (c.vocabulary, c.hidden)
    if c.gpt:
        yield "embed_positions.weight", (c.sequence, c.hidden)
    for i in range(c.layers):
        at = f"layers.{i}."
        yield from part(at + "input_layernorm", c.hidden)
        for name, outputs in (("q", c.hidden), ("k", kv), ("v", kv), ("o", c.hidden)):
            yield from part(f"{at}self_attn.{name}_proj", outputs, c.hidden)
        yield from part(at + "post_attention_layernorm", c.hidden)
        for name in ("up",) if c.gpt else ("gate", "up"):
            yield from part(f"{at}mlp.{name}_proj", c.intermediate, c.hidden)
        yield from part(at + "mlp.down_proj", c.hidden, c.intermediate)
    yield from part("norm", c.hidden)
    if not c.gpt:
        yield "lm_head.weight", (c.vocabulary, c.hidden)


def state_bytes(c):
    """Of parameters and two moments of each, in float32."""
    return 3 * 4 * sum(int(np.prod(shape)) for _, shape in shapes(c))


def weights(c):
    """Parameter number n from stream n: a norm's scale within 1/8 of 1, a bias within 1/8 of 0, the
    embedding with variance 1 unless it is the head, too, matrices within ±1/sqrt(in)."""
    out = {}
    for stream, (name, shape) in enumerate(shapes(c)):
        middle, width = 0, 1 / np.sqrt(shape[-1])
        if len(shape) == 1:
            middle, width = 0 if name.endswith(".bias") else 1, 0.125
        elif name == "embed_tokens.weight" and not c.gpt:
            width = np.sqrt(3)
        values = (2 * uniform(stream, int(np.prod(shape))) - 1) * np.float32(width)
        out[name] = (np.float32(middle) + values).reshape(shape)
    return out


def text(c, count=BATCHES):
    """`count` batches of (tokens, next tokens): a token is five times the one before plus one of
    four, so that there is something to learn."""
    rows = count * c.rows
    noise = (hashed(1001, rows * c.sequence) % 4).astype(np.int64).reshape(rows, c.sequence)
    tokens = np.empty((rows, c.sequence + 1), dtype=np.int64)
    tokens[:, 0] = hashed(1000, rows) % c.vocabulary
    for i in range(c.sequence):
        tokens[:, i + 1] = (5 * tokens[:, i] + noise[:, i]) % c.vocabulary
    tokens = tokens.reshape(count, c.rows, c.sequence + 1)
    return [(np.ascontiguousarray(t[:, :-1]), np.ascontiguousarray(t[:, 1:])) for t in tokens]
