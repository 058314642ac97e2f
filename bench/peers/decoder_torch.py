# SPDX-License-Identifier: Apache-2.0
"""The decoder's step in PyTorch: decoder_torch.py <eager|compile>[+autocast] <threads> <small|char|seed> [memory].

Each way has variants that users write; the fastest on this machine contends. The first is weighed.
"""

import contextlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

import decoder_task as decoder
import task

MIXED = any(way.endswith("+autocast") for way in sys.argv[1:2])


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        kv = c.kv_heads * c.head_size
        self.c = c
        self.q_proj = nn.Linear(c.hidden, c.hidden, bias=c.gpt)
        self.k_proj = nn.Linear(c.hidden, kv, bias=c.gpt)
        self.v_proj = nn.Linear(c.hidden, kv, bias=c.gpt)
        self.o_proj = nn.Linear(c.hidden, c.hidden, bias=c.gpt)

    def forward(self, x):
        c = self.c
        batch, sequence, _ = x.shape
        q, k, v = (p(x).view(batch, sequence, -1, c.head_size).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=c.causal,
                                           enable_gqa=c.kv_heads != c.heads)
        return self.o_proj(y.transpose(1, 2).reshape(batch, sequence, c.hidden))


class SwiGLU(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = nn.Linear(c.hidden, c.intermediate, bias=False)
        self.up_proj = nn.Linear(c.hidden, c.intermediate, bias=False)
        self.down_proj = nn.Linear(c.intermediate, c.hidden, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class FeedForward(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.up_proj = nn.Linear(c.hidden, c.intermediate)
        self.down_proj = nn.Linear(c.intermediate, c.hidden)

    def forward(self, x):
        return self.down_proj(F.gelu(self.up_proj(x)))


def norm(c):
    return (nn.LayerNorm if c.gpt else nn.RMSNorm)(c.hidden, c.eps)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = norm(c)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = norm(c)
        self.mlp = FeedForward(c) if c.gpt else SwiGLU(c)

    def forward(self, x):
        h = x + self.self_attn(self.input_layernorm(x))
        return h + self.mlp(self.post_attention_layernorm(h))


class Decoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c.vocabulary, c.hidden)
        self.embed_positions = nn.Embedding(c.sequence, c.hidden) if c.gpt else None
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.norm = norm(c)
        self.lm_head = None if c.gpt else nn.Linear(c.hidden, c.vocabulary, bias=False)

    def forward(self, tokens):
        h = self.embed_tokens(tokens)
        if self.embed_positions is not None:
            h = h + self.embed_positions.weight[: tokens.shape[1]]
        for layer in self.layers:
            h = layer(h)
        h = self.norm(h)
        return F.linear(h, self.embed_tokens.weight) if self.lm_head is None else self.lm_head(h)


def make_model(c):
    """The model and its first weights."""
    with torch.device("meta"):
        model = Decoder(c)
    first = {name: task.on_device(torch.from_numpy(w)) for name, w in decoder.weights(c).items()}
    model.load_state_dict({name: w.clone() for name, w in first.items()}, assign=True)
    for p in model.parameters():
        p.requires_grad_()
    return model, first


def cross_entropy(logits, following):
    return F.cross_entropy(logits.flatten(0, 1).float(), following.flatten())


def precision():
    return torch.autocast("cpu", torch.bfloat16) if MIXED else contextlib.nullcontext()


def module_step(c, how, compiled):
    """The step function as in the documentation; forward, loss and update may be compiled."""
    model, first = make_model(c)
    optimizer = getattr(torch.optim, c.optimizer)(
        model.parameters(), lr=decoder.LEARNING_RATE, betas=(decoder.BETA1, decoder.BETA2),
        eps=decoder.EPS, weight_decay=decoder.DECAY[c.optimizer], **{how: True})

    def loss_of(tokens, following):
        with precision():
            logits = model(tokens)
        return cross_entropy(logits, following)

    update = optimizer.step
    if compiled:
        loss_of = torch.compile(loss_of, **compiled)
        if how != "fused":
            update = torch.compile(update)

    def reset():
        optimizer.zero_grad()
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(first[name])
        for state in optimizer.state.values():
            for value in state.values():
                value.zero_()

    def step(tokens, following):
        optimizer.zero_grad()
        loss = loss_of(tokens, following)
        loss.backward()
        update()
        return loss

    return reset, step


def whole_step(c):
    """Forward, gradients and update as one function, compiled without a graph break."""
    model, first = make_model(c)
    weights = {name: p.detach() for name, p in model.named_parameters()}
    means = {name: torch.zeros_like(w) for name, w in weights.items()}
    squares = {name: torch.zeros_like(w) for name, w in weights.items()}
    count = task.on_device(torch.zeros(()))
    decay = decoder.LEARNING_RATE * decoder.DECAY[c.optimizer]

    def loss_of(ws, tokens, following):
        with precision():
            logits = torch.func.functional_call(model, ws, (tokens,))
        return cross_entropy(logits, following)

    @torch.compile(fullgraph=True)
    def train(ws, means, squares, count, tokens, following):
        gradients, loss = torch.func.grad_and_value(loss_of)(ws, tokens, following)
        count.add_(1)
        step_size = decoder.LEARNING_RATE / (1 - decoder.BETA1**count)
        root = torch.sqrt(1 - decoder.BETA2**count)
        for name, g in gradients.items():
            means[name].lerp_(g, 1 - decoder.BETA1)
            squares[name].mul_(decoder.BETA2).addcmul_(g, g, value=1 - decoder.BETA2)
            ws[name].mul_(1 - decay)
            ws[name].sub_(means[name] / (squares[name].sqrt() / root + decoder.EPS) * step_size)
        return loss

    def reset():
        for name, w in weights.items():
            w.copy_(first[name])
            means[name].zero_()
            squares[name].zero_()
        count.zero_()

    def step(tokens, following):
        with torch.no_grad():
            return train(weights, means, squares, count, tokens, following)

    return reset, step


def variants_of(way, c):
    if way == "eager":
        ways = {how: lambda how=how: module_step(c, how, None) for how in ("fused", "foreach")}
    else:
        plain, tuned = {"dynamic": False}, {"dynamic": False, "mode": "max-autotune-no-cudagraphs"}
        ways = {
            "loss+fused": lambda: module_step(c, "fused", plain),
            "tuned loss+fused": lambda: module_step(c, "fused", tuned),
            "loss+update": lambda: module_step(c, "foreach", plain),
            "whole step": lambda: whole_step(c),
        }
    return ways


def main():
    way, threads, name = sys.argv[1].split("+")[0], int(sys.argv[2]), sys.argv[3]
    loaded = task.resident("VmRSS")
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)
    c = decoder.CONFIGS[name]
    data = [(task.on_device(torch.from_numpy(x)), task.on_device(torch.from_numpy(y)))
            for x, y in decoder.text(c)]
    variants = variants_of(way, c)
    label = ("PyTorch eager" if way == "eager" else "torch.compile") + " autocast" * MIXED
    if sys.argv[4:] == ["memory"]:
        reset, step = next(iter(variants.values()))()
        task.weigh(label, decoder.state_bytes(c), reset, step, lambda loss: loss.item(), data[:3],
                   loaded)
        return
    if name == "seed":  # 4 GB each: the first alone
        variants = dict(list(variants.items())[:1])
    variant, reset, step = task.fastest(f"decoder_torch {way}", variants, data[:4],
                                        lambda loss: loss.item(), 1 if name == "seed" else 4)
    task.serve(label, f"{torch.__version__} ({variant})", torch.backends.cpu.get_cpu_capability(),
               reset, lambda i: step(*data[i]), lambda loss: loss.item(), decoder.BATCHES,
               decoder.WARM)


if __name__ == "__main__":
    main()
