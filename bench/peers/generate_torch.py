# SPDX-License-Identifier: Apache-2.0
"""Text with a static cache of keys and values in PyTorch: generate_torch.py <eager|compile>
<threads>. Each way has variants that users write; the fastest on this machine contends."""

import sys

import torch
import torch.nn.functional as F

import decoder_task as decoder
import task
from decoder_torch import make_model

PLACES, WARM = 256, 2


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), -1)
    return x * cos + turned * sin


class Writer(torch.nn.Module):
    """The model with a cache: tokens at positions to the most probable next one. `sliced` reads
    the places written so far, otherwise a mask hides the others."""

    def __init__(self, c, sliced):
        super().__init__()
        self.c, self.sliced = c, sliced
        self.model, _ = make_model(c)
        self.requires_grad_(False)
        half = c.head_size // 2
        frequency = c.rotary_theta ** (-torch.arange(half, dtype=torch.float32) / half)
        angle = torch.arange(PLACES, dtype=torch.float32)[:, None] * frequency
        angle = torch.cat((angle, angle), -1)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.register_buffer("places", torch.arange(PLACES))
        self.cache = [tuple(torch.zeros(1, c.kv_heads, PLACES, c.head_size) for _ in "kv")
                      for _ in range(c.layers)]

    def attention(self, layer, x, seen, positions, end):
        c = self.c
        q, k, v = (p(x).view(1, -1, n, c.head_size).transpose(1, 2) for p, n in (
            (layer.q_proj, c.heads), (layer.k_proj, c.kv_heads), (layer.v_proj, c.kv_heads)))
        cos, sin = self.cos[positions], self.sin[positions]
        keys, values = seen
        keys.index_copy_(2, positions, rotate(k, cos, sin))
        values.index_copy_(2, positions, v)
        if self.sliced:
            keys, values, places = keys[:, :, :end], values[:, :, :end], self.places[:end]
        else:
            places = self.places
        mask = None if self.sliced and len(positions) == 1 else places <= positions[:, None]
        y = F.scaled_dot_product_attention(rotate(q, cos, sin), keys, values, attn_mask=mask)
        return layer.o_proj(y.transpose(1, 2).reshape(1, -1, c.hidden))

    def forward(self, tokens, positions, end):
        h = self.model.embed_tokens(tokens)
        for layer, seen in zip(self.model.layers, self.cache):
            h = h + self.attention(layer.self_attn, layer.input_layernorm(h), seen, positions, end)
            h = h + layer.mlp(layer.post_attention_layernorm(h))
        return self.model.lm_head(self.model.norm(h[:, -1])).argmax(-1, keepdim=True)


def make(c, sliced, compiled):
    """reset() reads the prompt; step() writes a token and gives the sum of all so far."""
    writer = Writer(c, sliced)
    prompt = torch.from_numpy(decoder.text(c, 1)[0][0])
    forward = torch.compile(writer, **compiled) if compiled else writer
    state = {}

    def reset():
        with torch.inference_mode():
            for pair in writer.cache:
                for x in pair:
                    x.zero_()
            n = prompt.shape[1]
            state.update(at=n, sum=0, token=writer(prompt, torch.arange(n), n))

    def step():
        with torch.inference_mode():
            at = state["at"]
            # Sizes are fixed where it is compiled, so that it is compiled once.
            token = forward(state["token"], torch.tensor([at]), at + 1 if sliced else PLACES)
            state.update(at=at + 1, token=token, sum=state["sum"] + token.item())
        return state["sum"]

    return reset, step


def variants_of(way, c):
    if way == "eager":
        return {"masked": lambda: make(c, False, None), "sliced": lambda: make(c, True, None)}

    frozen = {"freezing": True}
    return {
        "masked": lambda: make(c, False, {"dynamic": False}),
        "frozen": lambda: make(c, False, {"dynamic": False, "options": frozen}),
        "frozen, tuned": lambda: make(
            c, False, {"dynamic": False, "options": {**frozen, "max_autotune": True}}),
    }


def main():
    way, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)
    c = decoder.CONFIGS["text"]
    name, reset, step = task.fastest(f"generate_torch {way}", variants_of(way, c), [()] * 16,
                                     lambda total: total, 6)
    label = "PyTorch eager" if way == "eager" else "torch.compile"
    task.serve(label, f"{torch.__version__} ({name})", torch.backends.cpu.get_cpu_capability(),
               reset, lambda i: step(), lambda total: total, PLACES, WARM)


if __name__ == "__main__":
    main()
