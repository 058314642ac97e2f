#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""By hand: examples/language_model and PyTorch train from the same weights on the same pieces, without dropout, and
then predict a held-out text. PyTorch in double says how far roundings alone lead losses apart.

    python language_model.py <program> <text> [--steps 100] [--bytes] [--lr 20]

The models, the pieces and the rule for the rate are those of PyTorch's examples/word_language_model."""

import argparse
import copy
import json
import math
import pathlib
import re
import struct
import subprocess
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

EMSIZE, NHID, NLAYERS, NHEAD = 200, 200, 2, 2
BATCH, BPTT, CLIP = 20, 35, 0.25


def corpus(path, by_bytes):
    """The number of different tokens, and three texts of them."""
    numbers, ids = {}, []
    if by_bytes:
        tokens = pathlib.Path(path).read_bytes()
    else:
        tokens = [word for line in pathlib.Path(path).read_text().splitlines() for word in line.split() + ["<eos>"]]
    ids = [numbers.setdefault(token, len(numbers)) for token in tokens]
    part = len(ids) // 20
    cut = len(ids) - 2 * part
    return len(numbers), [torch.tensor(t) for t in (ids[:cut], ids[cut:cut + part], ids[cut + part:])]


def batchify(ids, batch):
    n = len(ids) // batch
    return ids[:n * batch].view(batch, n).t().contiguous()


class Recurrent(nn.Module):
    def __init__(self, kind, tokens, tied):
        super().__init__()
        self.encoder = nn.Embedding(tokens, EMSIZE)
        self.rnn = getattr(nn, kind)(EMSIZE, NHID, NLAYERS)
        self.decoder = nn.Linear(NHID, tokens)
        if tied:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, x, hidden):
        y, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(y), hidden


class Transformer(nn.Module):
    def __init__(self, tokens, tied):
        super().__init__()
        self.encoder = nn.Transformer(EMSIZE, NHEAD, NLAYERS, 1, NHID, dropout=0.0).encoder
        self.input_emb = nn.Embedding(tokens, EMSIZE)
        self.decoder = nn.Linear(EMSIZE, tokens)
        if tied:
            self.decoder.weight = self.input_emb.weight
        nn.init.uniform_(self.input_emb.weight, -0.1, 0.1)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        at = torch.arange(5000.0).unsqueeze(1)
        each = torch.exp(torch.arange(0, EMSIZE, 2).float() * (-math.log(10000.0) / EMSIZE))
        self.register_buffer("pe", torch.zeros(5000, 1, EMSIZE))
        self.pe[:, 0, 0::2], self.pe[:, 0, 1::2] = torch.sin(at * each), torch.cos(at * each)

    def forward(self, x, hidden):
        n = len(x)
        mask = torch.log(torch.tril(torch.ones(n, n, dtype=self.pe.dtype)))
        y = self.encoder(self.input_emb(x) * math.sqrt(EMSIZE) + self.pe[:n], mask=mask)
        return self.decoder(y), hidden


def save(path, tensors):
    """A safetensors file."""
    header, data = {}, b""
    for name, t in tensors.items():
        raw = t.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def pieces(text):
    for at in range(0, len(text) - 1, BPTT):
        n = min(BPTT, len(text) - 1 - at)
        yield text[at:at + n], text[at + 1:at + 1 + n].reshape(-1)


def loss_of(model, x, target, hidden):
    logits, hidden = model(x, hidden)
    if isinstance(hidden, tuple):
        hidden = tuple(h.detach() for h in hidden)
    elif hidden is not None:
        hidden = hidden.detach()
    return F.cross_entropy(logits.flatten(0, 1), target), hidden


def train(model, text, valid, steps, lr):
    """The best model of all epochs; of the last one what fits into the steps."""
    best, least = None, math.inf
    while steps > 0:
        model.train()
        hidden = None
        for _, (x, target) in zip(range(steps), pieces(text)):
            steps -= 1
            model.zero_grad()
            loss, hidden = loss_of(model, x, target, hidden)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            with torch.no_grad():
                for p in model.parameters():
                    if p.grad is not None:
                        p.add_(p.grad, alpha=-lr)
        loss = evaluate(model, valid)
        if loss < least:
            best, least = copy.deepcopy(model), loss
        else:
            lr /= 4
    return best


@torch.no_grad()
def evaluate(model, text):
    model.eval()
    hidden, total = None, 0.0
    for x, target in pieces(text):
        loss, hidden = loss_of(model, x, target, hidden)
        total += len(x) * loss.item()
    return total / (len(text) - 1)


def loss_after(model, texts, steps, lr):
    training, *held_out = texts
    valid, test = (batchify(ids, 10) for ids in held_out)
    return evaluate(train(model, batchify(training, BATCH), valid, steps, lr), test)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--bytes", action="store_true")
    parser.add_argument("--lr", type=float, default=20)
    o = parser.parse_args()
    tokens, texts = corpus(o.text, o.bytes)
    worst = 0.0
    for kind in ("LSTM", "GRU", "Transformer"):
        for tied in (False, True):
            torch.manual_seed(1)
            model = Transformer(tokens, tied) if kind == "Transformer" else Recurrent(kind, tokens, tied)
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "weights.safetensors"
                save(file, dict(model.named_parameters()))
                command = [o.program, "--model", kind, "--data", o.text, "--weights", file, "--dropout", "0",
                           "--steps", str(o.steps), "--lr", str(o.lr), *["--tied"] * tied, *["--bytes"] * o.bytes]
                said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            ours = float(re.search(r"test loss ([0-9.]+)", said)[1])
            theirs, exact = (loss_after(m, texts, o.steps, o.lr) for m in (model, copy.deepcopy(model).double()))
            worst = max(worst, abs(ours / theirs - 1) - 2 * abs(exact / theirs - 1))
            print(f"{kind:11} {'tied' if tied else '    '}  test loss {ours:.4f}, PyTorch {theirs:.4f}, "
                  f"in double {exact:.4f}; perplexity {math.exp(ours):.2f}, PyTorch {math.exp(theirs):.2f}, "
                  f"in double {math.exp(exact):.2f}", flush=True)
    return worst > 1e-3


if __name__ == "__main__":
    raise SystemExit(main())
