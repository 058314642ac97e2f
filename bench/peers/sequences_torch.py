# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers in PyTorch: sequences_torch.py <threads>; see sequences.cpp."""

import os
import sys

import torch
import torch.nn.functional as F

import sequences_task as sequences
import task


class Normed(torch.nn.Module):
    """A custom LSTM, with layer normalization."""

    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden
        for name, shape in zip(("in_", "back", "in_scale", "in_shift", "back_scale", "back_shift",
                                "c_scale", "c_shift"), sequences.shapes("normed", hidden)):
            self.register_parameter(name, torch.nn.Parameter(torch.empty(shape)))

    def forward(self, xs):
        n, wide = self.hidden, 4 * self.hidden
        # One product for all steps: the fastest way to write it.
        inputs = F.layer_norm(xs @ self.in_.t(), (wide,), self.in_scale, self.in_shift)
        h = c = xs.new_zeros(xs.shape[1], n)
        made = []
        for x in inputs.unbind(0):
            gates = x + F.layer_norm(h @ self.back.t(), (wide,), self.back_scale, self.back_shift)
            i, f, g, o = gates.chunk(4, 1)
            c = F.layer_norm(f.sigmoid() * c + i.sigmoid() * g.tanh(), (n,), self.c_scale,
                             self.c_shift)
            h = o.sigmoid() * c.tanh()
            made.append(h)
        return torch.stack(made), (h, c)


def model_of(name, hidden):
    if name == "normed":
        model = Normed(hidden)
    elif name == "speaker":
        model = torch.nn.LSTM(sequences.SPEAKER["inputs"], hidden, sequences.SPEAKER["layers"])
    else:
        model = (torch.nn.LSTM if name == "lstm" else torch.nn.GRU)(hidden, hidden)
    with torch.no_grad():
        for parameter, values in zip(model.parameters(), sequences.weights(name, hidden),
                                     strict=True):
            parameter.copy_(torch.from_numpy(values))
    return model


def make(name, way, batch, hidden, compiled):
    model = model_of(name, hidden)
    x = torch.from_numpy(sequences.series(name, batch, hidden))

    def loss_of(x):
        y = model(x)[0]
        return (y * y).mean()

    loss_fn = torch.compile(loss_of) if compiled else loss_of
    read_fn = torch.compile(model) if compiled else model

    def read():
        with torch.inference_mode():
            return read_fn(x)[0]

    def train():
        model.zero_grad(set_to_none=True)
        loss_fn(x).backward()
        return [p.grad for p in model.parameters()]

    if way == "reading":
        return read, lambda y: y.double().abs().sum().item()
    return train, lambda all: sum(g.double().abs().sum().item() for g in all)


def variants(name, way, batch, hidden):
    if name not in sequences.GATES:
        return {}
    found = {"eager": lambda: make(name, way, batch, hidden, False)}
    # It writes 100 steps out, which takes minutes to compile.
    if name != "normed" or "BENCH_UNROLLED" in os.environ:
        found["compile"] = lambda: make(name, way, batch, hidden, True)
    return found


def main():
    threads = int(sys.argv[1])
    torch.set_num_threads(threads)
    sequences.answer("PyTorch", torch.__version__, variants, task.clock_of(threads))


if __name__ == "__main__":
    main()
