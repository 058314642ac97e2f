#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/recurrent.inc: what PyTorch 2.13 gives in double for recurrent layers and cells,
on the numbers of tests/reference/optim.py."""

import pathlib

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from optim import lines, numbers, weighted_sum

TIME, BATCH, IN, HIDDEN = 4, 3, 3, 4
LENGTHS = [2, 4, 1]


def fill(module):
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(numbers(tuple(p.shape), 10 + i) / 8)
    return module


def tensors(result):
    """Those of a result with its states, in order."""
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for part in result for t in tensors(part)]


def put_all(name, module, result, inputs):
    """The results; of the sum of their weighted sums the gradients of inputs, then of parameters."""
    results = tensors(result)
    loss = sum(weighted_sum(t) for t in results)
    all_of = results + list(torch.autograd.grad(loss, inputs + list(module.parameters())))
    rows = ["{" + ", ".join(f"{v:.9g}" for v in t.detach().reshape(-1).tolist()) + "}" for t in all_of]
    lines.append(f"inline const std::vector<std::vector<double>> {name}{{\n  " + ",\n  ".join(rows) + "};")


def layer(name, module, packed=False, state=()):
    fill(module)
    x = numbers((TIME, BATCH, IN), 1).requires_grad_()
    first = [(numbers((n, BATCH, size), 2 + i) / 4).requires_grad_()
             for i, (n, size) in enumerate(state)]
    given = () if not first else (first[0],) if len(first) == 1 else (tuple(first),)
    if packed:
        y, last = module(pack_padded_sequence(x, torch.tensor(LENGTHS), enforce_sorted=False), *given)
        result = (pad_packed_sequence(y)[0], last)
    else:
        result = module(x, *given)
    put_all(name, module, result, [x] + first)


def cell(name, module, states):
    fill(module)
    x = numbers((BATCH, IN), 1).requires_grad_()
    state = [(numbers((BATCH, HIDDEN), 2 + i) / 4).requires_grad_() for i in range(states)]
    put_all(name, module, module(x, state[0] if states == 1 else tuple(state)), [x] + state)


if __name__ == "__main__":
    torch.set_default_dtype(torch.double)
    layer("rnn", nn.RNN(IN, HIDDEN, 2, bidirectional=True), state=[(4, HIDDEN)])
    layer("rnn_relu", nn.RNN(IN, HIDDEN, nonlinearity="relu", bias=False))
    layer("lstm", nn.LSTM(IN, HIDDEN, 2, bidirectional=True), state=[(4, HIDDEN), (4, HIDDEN)])
    layer("lstm_proj", nn.LSTM(IN, HIDDEN, proj_size=2), state=[(1, 2), (1, HIDDEN)])
    layer("lstm_packed", nn.LSTM(IN, HIDDEN, 2, bidirectional=True), True,
          [(4, HIDDEN), (4, HIDDEN)])
    layer("gru", nn.GRU(IN, HIDDEN, 2, bidirectional=True), state=[(4, HIDDEN)])
    layer("gru_packed", nn.GRU(IN, HIDDEN, bidirectional=True), True, [(2, HIDDEN)])
    cell("rnn_cell", nn.RNNCell(IN, HIDDEN), 1)
    cell("lstm_cell", nn.LSTMCell(IN, HIDDEN), 2)
    cell("gru_cell", nn.GRUCell(IN, HIDDEN), 1)
    out = pathlib.Path(__file__).parent.parent / "data" / "recurrent.inc"
    out.write_text(
        "// SPDX-License-Identifier: Apache-2.0\n"
        "// Made by tests/reference/recurrent.py with PyTorch.\n"
        "// clang-format off\n"
        "#include <vector>\n\nnamespace reference {\n" + "\n".join(lines) +
        "\n}  // namespace reference\n")
