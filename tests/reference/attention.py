# SPDX-License-Identifier: Apache-2.0
"""Writes attention.txt: what PyTorch 2.15 computes, in double, for the cases of attention.cpp.

    pip install torch==2.15.0 numpy && python attention.py"""
import torch
import torch.nn as nn
import torch.nn.functional as F

import cases
from cases import save, write

inf = float("inf")


def numbers(sizes, seed=0):
    """From -1 to 1."""
    return cases.numbers(sizes, seed, torch.float64) / 4


def truths(sizes, seed):
    return cases.numbers(sizes, seed, torch.bool)


def fill(module):
    """Parameter number n holds numbers of seed n + 1."""
    for seed, p in enumerate(module.parameters()):
        p.data = numbers(p.shape, seed + 1)


def write_gradients(name, module, y, inputs):
    y.backward(numbers(y.shape, 99))
    write(name, y)
    for k, x in enumerate(inputs):
        write(f"{name}/in{k}", x.grad)
    for part, p in module.named_parameters():
        write(f"{name}/{part}", p.grad)


def attention(name, query, key=None, value=None, embed=8, heads=2, average=True, padding=None, mask=None, **config):
    """Of inputs of these sizes; without keys, self-attention."""
    module = nn.MultiheadAttention(embed, heads, dtype=torch.float64, **config)
    fill(module)
    q = numbers(query, 100).requires_grad_()
    k = numbers(key, 101).requires_grad_() if key else q
    v = numbers(value or key, 102).requires_grad_() if key else q
    y, weights = module(q, k, v, key_padding_mask=padding, attn_mask=mask, average_attn_weights=average)
    write(f"attention/{name}/weights", weights)
    write_gradients(f"attention/{name}", module, y, [q, k, v] if key else [q])


def layer(name, sizes, padding=None, mask=None, dim=8, heads=2, **config):
    module = nn.TransformerEncoderLayer(dim, heads, 12, 0.0, dtype=torch.float64, **config)
    fill(module)
    x = numbers(sizes, 100).requires_grad_()
    write_gradients(f"transformer/{name}", module, module(x, mask, padding), [x])


def some_hidden(sizes, seed):
    """A quarter of a mask, but never the first key."""
    mask = truths(sizes, seed) & truths(sizes, seed + 1)
    mask[..., 0] = False
    return mask


def encoder():
    torch.set_default_dtype(torch.float64)
    norm = nn.LayerNorm(8)
    module = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True), 2, norm, False)
    fill(module)
    x, target, padding = numbers((3, 5, 8), 100), numbers((3, 5, 8), 101), some_hidden((3, 5), 102)
    optimizer, losses = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9), []
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.mse_loss(module(x, src_key_padding_mask=padding), target)
        loss.backward()
        optimizer.step()
        losses.append(loss)
    write("transformer/losses", torch.stack(losses))
    for part, p in module.named_parameters():
        write(f"transformer/trained/{part}", p)


def functions():
    sizes = (2, 4, 3, 6), (2, 4, 5, 6), (2, 4, 5, 7)
    inputs = [numbers(s, seed) for seed, s in enumerate(sizes)]
    mask = numbers((3, 5), 3)
    mask[1, 2] = mask[0, 0] = -inf
    each = numbers((2, 1, 3, 5), 4)
    each[0, 0, 1, :4] = -inf
    for name, added in ("pairs", mask), ("each", each):
        cases.case(f"attention/added/{name}", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), *inputs, added)
    q, k, v = (numbers(s, seed) for seed, s in enumerate(((2, 4, 3, 2), (2, 4, 5, 2), (2, 4, 5, 3))))
    sdpa = F.scaled_dot_product_attention
    for name, scale in ("small", 0.3), ("negative", -0.8):
        cases.case(f"attention/scale/{name}", lambda *x: sdpa(*x, scale=scale), q, k, v)
    cases.case("attention/shared_heads", lambda *x: sdpa(*x, scale=1.1, is_causal=True, enable_gqa=True), q, k[:, :2], v[:, :2])
    for name, sizes in dict(pairs=(3, 5), heads=(4, 3, 5), ones=(1, 1, 3, 5), texts=(2, 1, 1, 5)).items():
        shown = ~some_hidden(sizes, 20)
        cases.case(f"attention/mask/shown/{name}", lambda *x: sdpa(*x, shown), q, k, v)
        cases.case(f"attention/mask/added/{name}", lambda q, k, v, m: sdpa(q, k, v, m), q, k, v, numbers(sizes, 21))


attention("plain", (3, 2, 8), (5, 2, 8))
attention("self", (4, 3, 8))
attention("batch_first", (2, 3, 8), (2, 5, 8), batch_first=True, bias=False)
attention("other_features", (3, 2, 8), (5, 2, 6), (5, 2, 4), kdim=6, vdim=4)
attention("other_values", (3, 2, 8), (5, 2, 8), (5, 2, 3), vdim=3, bias=False)
attention("more_keys", (3, 2, 8), (4, 2, 8), add_bias_kv=True, add_zero_attn=True, mask=some_hidden((3, 4), 5), padding=some_hidden((2, 4), 7))
attention("more_causal", (2, 3, 8), (2, 4, 8), add_bias_kv=True, batch_first=True, mask=torch.ones(3, 4, dtype=torch.bool).triu(1))
attention("zero_added", (3, 2, 8), (4, 2, 8), add_zero_attn=True, mask=numbers((3, 4), 9))
attention("pairs", (3, 2, 8), (5, 2, 8), mask=some_hidden((3, 5), 5))
attention("pairs_of_heads", (3, 2, 8), (5, 2, 8), mask=some_hidden((4, 3, 5), 5), average=False)
attention("added", (3, 2, 8), (5, 2, 8), mask=numbers((3, 5), 5), padding=numbers((2, 5), 6))
attention("added_by_heads", (3, 2, 8), (5, 2, 8), mask=numbers((4, 3, 5), 5), padding=torch.where(some_hidden((2, 5), 6), -inf, 0.0))
attention("causal", (2, 4, 8), batch_first=True, mask=nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64))
attention("no_batch", (3, 8), (5, 8), mask=some_hidden((3, 5), 5), padding=some_hidden((5,), 7))
attention("one", (1, 1, 1), embed=1, heads=1)
attention("odd", (7, 1, 15), (9, 1, 15), embed=15, heads=3)

layer("plain", (5, 2, 8))
layer("norm_first", (2, 5, 8), activation="gelu", batch_first=True, norm_first=True, padding=some_hidden((2, 5), 7))
layer("no_bias", (5, 2, 8), bias=False, mask=some_hidden((5, 5), 5), padding=some_hidden((2, 5), 7))
layer("no_batch", (4, 8), mask=numbers((4, 4), 5))
layer("causal", (2, 5, 8), batch_first=True, mask=torch.ones(5, 5, dtype=torch.bool).triu(1))
layer("one", (1, 1, 2), dim=2, heads=1)
functions()
encoder()
save(__file__, "attention.txt")
