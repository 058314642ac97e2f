# SPDX-License-Identifier: Apache-2.0
"""Writes forms.txt: what PyTorch 2.15 computes for every name of cmake/pytorch_functions.txt that has another form here.

    pip install torch==2.15.0 numpy && python forms.py"""
import pathlib
import re

import torch
import torch.nn.functional as F

import cases
from cases import inf, nan, numbers, save, write

TABLE = pathlib.Path(__file__).parents[2] / "cmake" / "pytorch_functions.txt"
MODULES = {"torch": "torch", "torch.nn.functional": "F", "torch.linalg": "torch.linalg", "torch.special": "torch.special"}

# The arguments with which PyTorch's function or method is called; x where a name is not listed. Of a method the first
# one is the tensor.
ARGUMENTS = {
    "x, y": """add sub subtract mul multiply divide true_divide div eq equal ge greater_equal gt greater le less_equal lt
        less ne not_equal arctan2 atan2 allclose dist floor_divide fmax fmin fmod hypot inner isclose
        logaddexp logaddexp2 logical_and logical_or logical_xor remainder xlogy vecdot""",
    "x, 1": "amax amin cumprod cumsum logcumsumexp",
    "x, 2": "float_power pow mvlgamma multigammaln matrix_power chunk split topk",
    "x, 0, 1": "moveaxis swapaxes swapdims transpose",
    "x, 0, 0, 1": "narrow_copy",
    "x, -1, 1": "clamp clip",
    "x, v, 0, 0": "select_scatter",
    "x, y[:2], 0, 0, 2": "slice_scatter",
    "x, v": "heaviside prelu",
    "x, i": "ldexp",
    "x, j": "take",
    "x, (4, 4)": "broadcast_to",
    "x, x.clone(), y": "addmm",
    "x, v, w": "addr",
    "x, v, y": "addcdiv addcmul",
    "x, b, b": "addbmm",
    "x, y, b": "bilinear",
    "x, y, x": "chain_matmul",
    "x, y, 0.3": "lerp",
    "x, 0, i, y": "index_add",
    "x, 1, j, y": "scatter scatter_add",
    "x, 0.1, 20": "threshold",
    "x, y, k": "linear_cross_entropy",
    "x, m, y": "where",
    "v": "trapz",
    "v, w": "ger vdot",
    "v, x, w": "addmv",
    "b, b.clone(), b.clone()": "baddbmm",
    "j": "bitwise_not",
    "j, i": "bitwise_and bitwise_or bitwise_xor",
    "j, x": "embedding_bag",
    "z, scale_factor=2": "upsample upsample_nearest upsample_bilinear",
    "x, 1, 2": "normal",
}
# Of one name alone.
CALLS = {
    "torch/concatenate": "torch.concatenate((x, y))",
    "torch/asarray": "torch.asarray(pointer)",
    "torch/as_tensor": "torch.as_tensor(pointer)",
    "torch/from_numpy": "torch.from_numpy(pointer.numpy())",
    "torch/frombuffer": "torch.frombuffer(pointer.numpy(), dtype=torch.float32).reshape(2, 3)",
    "torch/range": "torch.range(0, 2)",
    "torch/logspace": "torch.logspace(0, 1, 5)",
    "torch/empty": "torch.empty(2, 3).zero_()",
    "torch/empty_like": "torch.empty_like(x).zero_()",
    "torch/normal": "torch.normal(1, 2, (2, 3))",
    "torch/tensordot": "torch.tensordot(x, y, 1)",
    "torch.Tensor/bernoulli": "(x.abs() / 4).bernoulli()",
    "torch.Tensor/polygamma": "(x.abs() + 1).polygamma(1)",
    "torch.Tensor/polygamma_": "(x.abs() + 1).polygamma_(1)",
}
BY_NAME = {name: arguments for arguments, names in ARGUMENTS.items() for name in names.split()}


def inputs(special):
    """Those of forms.cpp."""
    x, y = numbers((4, 4)), numbers((4, 4), 1)
    v, w = numbers((4,), 2), numbers((4,), 3)
    pointer = x.reshape(-1)[:6].reshape(2, 3).clone()
    if special:
        x = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1, -1, 0.5, -2.5, 1e30, -1e30, 1e-30, 88, -88, 20.5, 3]).reshape(4, 4)
        y = x.T.contiguous()
        v, w = torch.tensor([nan, 2, inf, -0.0]), torch.tensor([1, inf, 0, -3])
    return dict(
        x=x, y=y, v=v, w=w, pointer=pointer, b=numbers((4, 4, 4), 4), z=numbers((1, 4, 4, 4), 5),
        m=numbers((4, 4), 6, torch.bool), i=torch.tensor([2, 0, 3, 1]), k=torch.tensor([3, 0, 0, 2]),
        j=torch.tensor([[2, 0, 3, 1], [0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]]), s=0.5)


def call(section, name):
    if f"{section}/{name}" in CALLS:
        return CALLS[f"{section}/{name}"]
    arguments = BY_NAME.get(name.removesuffix("_"), "x")
    if section == "torch.Tensor":
        this, _, others = arguments.partition(", ")
        return f"{this}.{name}({others})"
    return f"{MODULES[section]}.{name}({arguments})"


def each(name, y):
    if isinstance(y, (tuple, list)):
        for k, part in enumerate(y):
            each(f"{name}/{k}", part)
    else:
        write(name, torch.as_tensor(y))


def sample(name, text):
    """The mean and the deviation of each element."""
    drawn = torch.stack([eval(text, globals(), inputs(False)).double() for _ in range(20000)]).flatten(1)
    write(f"{name}/mean", drawn.mean(0))
    write(f"{name}/deviation", drawn.std(0))


torch.manual_seed(1)
section = ""
for line in TABLE.read_text().splitlines():
    if title := re.match(r"\[([\w.]+): ", line):
        section = title[1]
    elif row := re.match(r"(\w+) = (.*)", line):
        name, text = f"forms/{section}/{row[1]}", call(section, row[1])
        if re.search("rand|bernoulli", row[2]):
            sample(name, text)
            continue
        for kind in "", "/special":
            each(name + kind, eval(text, globals(), inputs(bool(kind))))
save(__file__, "forms.txt")
