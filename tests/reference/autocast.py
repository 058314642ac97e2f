# SPDX-License-Identifier: Apache-2.0
"""Writes autocast.txt: what PyTorch 2.15 computes in torch.autocast("cpu", torch.bfloat16), for run/autocast.cpp.

    pip install torch==2.15.0 numpy && python autocast.py"""
import torch
import torch.nn.functional as F

from cases import case, numbers, save


def product(name, f, *inputs):
    """f in autocast; its result is bfloat16, its gradients are float32."""
    def run(*x):
        with torch.autocast("cpu", torch.bfloat16):
            y = f(*x)
        assert y.dtype == torch.bfloat16
        return y.float()

    case(f"autocast/{name}", run, *inputs)


product("matmul", torch.matmul, numbers((7, 33)), numbers((33, 5), 1))
product("linear", F.linear, numbers((3, 4, 19)), numbers((6, 19), 1))
product("einsum", lambda a, b: torch.einsum("bij,jk->kbi", a, b), numbers((3, 5, 18)), numbers((18, 2), 1))
product("bmm", torch.bmm, numbers((2, 3, 21)), numbers((2, 21, 4), 1))
product("conv1d", F.conv1d, numbers((1, 33, 3)), numbers((32, 33, 1), 1))
product("conv2d", lambda x, w: F.conv2d(x, w, stride=2, padding=1), numbers((1, 33, 3, 4)), numbers((32, 33, 1, 2), 1))
product("conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w, stride=2), numbers((1, 33, 2, 3)), numbers((33, 32, 1, 2), 1))
product("attention", lambda q, k, v: F.scaled_dot_product_attention(q / 4, k / 4, v),
        numbers((2, 2, 5, 8)), numbers((2, 2, 6, 8), 1), numbers((2, 2, 6, 8), 2))
product("conv2d_3x3", lambda x, w: F.conv2d(x, w, padding=1), numbers((1, 32, 4, 5)), numbers((32, 32, 3, 3), 1))
product("addmm", torch.addmm, numbers((7, 5), 2), numbers((7, 33)), numbers((33, 5), 1))
product("baddbmm", torch.baddbmm, numbers((2, 3, 4), 2), numbers((2, 3, 21)), numbers((2, 21, 4), 1))
heads = numbers((1, 4, 6, 8)), numbers((1, 2, 6, 8), 1), numbers((1, 2, 6, 8), 2)
own_heads = heads[0], *(numbers((1, 4, 6, 8), i) for i in (1, 2))
product("attention_shared_heads", lambda q, k, v: F.scaled_dot_product_attention(
    q / 4, *(x.repeat_interleave(2, 1) / d for x, d in ((k, 4), (v, 1)))), *heads)
product("attention_causal", lambda q, k, v: F.scaled_dot_product_attention(q / 4, k / 4, v, is_causal=True), *own_heads)
shown = torch.tensor([[(3 * i + j) % 4 != 1 for j in range(6)] for i in range(6)])
product("attention_mask", lambda q, k, v: F.scaled_dot_product_attention(q / 4, k / 4, v, shown), *own_heads)
product("attention_bias", lambda q, k, v, b: F.scaled_dot_product_attention(q / 4, k / 4, v, b), *own_heads, numbers((6, 6), 3))
save(__file__, "autocast.txt")
