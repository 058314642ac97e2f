# SPDX-License-Identifier: Apache-2.0
"""The MLP step in PyTorch: mlp_torch.py <eager|compile> <threads>.

Each way has variants that users write; the fastest on this machine contends.
"""

import sys

import torch
import torch.nn.functional as F

import mlp_task as mlp
import task


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(mlp.INPUTS, mlp.HIDDEN)
        self.fc2 = torch.nn.Linear(mlp.HIDDEN, mlp.CLASSES)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def module_step(how, compiled):
    """The step function as in the documentation; forward, loss and update may be compiled."""
    model = Mlp()
    first = [torch.from_numpy(w) for w in mlp.weights()]
    optimizer = torch.optim.SGD(
        model.parameters(), lr=mlp.LEARNING_RATE, momentum=mlp.MOMENTUM, **{how: True})

    def loss_of(x, y):
        return F.cross_entropy(model(x), y)

    update = optimizer.step
    if compiled:
        loss_of = torch.compile(loss_of)
        if how != "fused":
            update = torch.compile(update)

    def reset():
        with torch.no_grad():
            for p, w in zip(model.parameters(), first):
                p.copy_(w)
        optimizer.state.clear()

    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        update()
        return loss

    return reset, step


def whole_step():
    """Forward, gradients and update as one function, compiled without a graph break."""
    first = [torch.from_numpy(w) for w in mlp.weights()]
    weights = [w.clone() for w in first]
    velocities = [torch.zeros_like(w) for w in first]

    def loss_of(ws, x, y):
        return F.cross_entropy(F.linear(F.relu(F.linear(x, ws[0], ws[1])), ws[2], ws[3]), y)

    @torch.compile(fullgraph=True)
    def train(ws, vs, x, y):
        gradients, loss = torch.func.grad_and_value(loss_of)(ws, x, y)
        for w, v, g in zip(ws, vs, gradients):
            v.mul_(mlp.MOMENTUM).add_(g)
            w.sub_(v, alpha=mlp.LEARNING_RATE)
        return loss

    def reset():
        for w, v, f in zip(weights, velocities, first):
            w.copy_(f)
            v.zero_()

    def step(x, y):
        with torch.no_grad():
            return train(weights, velocities, x, y)

    return reset, step


def main():
    way, threads = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)
    data = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in mlp.batches()]
    if way == "eager":
        variants = {how: lambda how=how: module_step(how, False) for how in ("foreach", "fused")}
    else:
        variants = {
            "loss+fused": lambda: module_step("fused", True),
            "loss+update": lambda: module_step("foreach", True),
            "whole step": whole_step,
        }
    name, reset, step = task.fastest(f"mlp_torch {way}", variants, data, lambda loss: loss.item())
    label = "PyTorch eager" if way == "eager" else "torch.compile"
    task.serve(label, f"{torch.__version__} ({name})", torch.backends.cpu.get_cpu_capability(),
               reset, lambda i: step(*data[i]), lambda loss: loss.item(), mlp.BATCHES, mlp.WARM)


if __name__ == "__main__":
    main()
