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
    "x, y": """add sub subtract mul multiply divide true_divide div eq equal ge greater_equal gt greater le less_equal lt rsub
        less ne not_equal arctan2 atan2 allclose copysign dist floor_divide fmax fmin fmod hypot inner isclose
        logaddexp logaddexp2 logical_and logical_or logical_xor remainder xlogy vecdot""",
    "x, 1": "clamp_max clamp_min log_softmax amax amin cumprod cumsum logcumsumexp",
    "x, 2": "hsplit tensor_split unsafe_chunk unsafe_split vsplit float_power pow mvlgamma multigammaln matrix_power chunk split topk",
    "x, 9": "random",
    "b, 4": "histc",
    "x, 0, i, 0.5": "index_fill",
    "x, i, v": "put",
    "x, 2, 0, 1": "renorm",
    "b, b, v": "conv_tbc",
    "z, 2": "native_channel_shuffle",
    "x, 0.5": "fill fill_diagonal",
    "x, m, 0.5": "masked_fill",
    "x, (i, k), v": "index_put",
    "x, (1, 3)": "split_with_sizes unsafe_split_with_sizes",
    "x, (1, 4)": "sum_to_size",
    "x, (1, 0)": "permute_copy",
    "x, (2, 1)": "repeat",
    "x, (2, 8)": "view view_copy",
    "x, 0": "unsqueeze_copy",
    "v, (4, 4)": "expand expand_copy",
    "v, x": "broadcast_tensors expand_as",
    "k": "bincount",
    "m": "argwhere",
    "b": "int long",
    "b, 2": "dsplit",
    "z": "squeeze_copy",
    "z, b": "reshape_as view_as",
    "x, 0, 1": "moveaxis transpose_copy swapaxes swapdims transpose",
    "x, 0, 0, 1": "narrow_copy",
    "x, -1, 1": "clamp clip",
    "x, v, 0, 0": "select_scatter",
    "x, y[:2], 0, 0, 2": "slice_scatter",
    "x, v": "diagonal_scatter heaviside prelu",
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
    "x, m, y": "masked_scatter where",
    "v": "trapz",
    "v, w": "ger vdot",
    "v, x, w": "addmv",
    "b, b.clone(), b.clone()": "baddbmm",
    "j": "bitwise_not byte float",
    "j, i": "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift",
    "j, x": "embedding_bag",
    "z, scale_factor=2": "upsample upsample_nearest upsample_bilinear",
    "x, 1, 2": "normal",
}
# Of one name alone.
CALLS = {
    "torch/H": "x.H",
    "torch/T": "x.T",
    "torch/mH": "x.mH",
    "torch/mT": "x.mT",
    "torch/constant_pad_nd": "torch.constant_pad_nd(x, (1, 0, 0, 2), 0.5)",
    "torch/empty_permuted": "torch.empty_permuted((2, 3), (0, 1)).zero_()",
    "torch/empty_strided": "torch.empty_strided((2, 3), (3, 1)).zero_()",
    "torch/new_empty": "x.new_empty((2, 3)).zero_()",
    "torch/new_empty_strided": "x.new_empty_strided((2, 3), (3, 1)).zero_()",
    "torch/new_full": "x.new_full((2, 3), 0.5)",
    "torch/new_ones": "x.new_ones((2, 3))",
    "torch/new_zeros": "x.new_zeros((2, 3))",
    "torch/scalar_tensor": "torch.scalar_tensor(0.5)",
    "torch/item": "x[0, 0].item()",
    "torch/gradient": "torch.gradient(x)",
    "torch/slice": "x[:, 1:3]",
    "torch/split_with_sizes_copy": "torch.split_with_sizes_copy(x, (1, 3))",
    "torch/to": "x.to(torch.float64)",
    "torch.Tensor/type_as": "j.type_as(x)",
    "torch/log_normal": "x.log_normal_(0, 0.5)",
    "torch.Tensor/log_normal_": "x.log_normal_(0, 0.5)",
    "torch.Tensor/geometric_": "x.geometric_(0.5)",
    "torch/geometric": "x.geometric_(0.5)",
    "torch/exponential": "x.exponential_()",
    "torch/uniform": "x.uniform_()",
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
    x, y = numbers((4, 4)).clone(), numbers((4, 4), 1)
    v, w = numbers((4,), 2), numbers((4,), 3)
    pointer = x.reshape(-1)[:6].reshape(2, 3).clone()
    if special:
        x = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1, -1, 0.5, -2.5, 1e30, -1e30, 1e-30, 88, -88, 20.5, 3]).reshape(4, 4).clone()
        y = x.T.contiguous()
        v, w = torch.tensor([nan, 2, inf, -0.0]), torch.tensor([1, inf, 0, -3])
    return dict(
        x=x, y=y, v=v, w=w, pointer=pointer, b=numbers((4, 4, 4), 4), z=numbers((1, 4, 4, 4), 5),
        m=numbers((4, 4), 6, torch.bool), i=torch.tensor([2, 0, 3, 1]), k=torch.tensor([3, 0, 0, 2]),
        j=torch.tensor([[2, 0, 3, 1], [0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]]), s=0.5)


def call(section, name):
    """What PyTorch is asked for; of what torch has not, the method."""
    if f"{section}/{name}" in CALLS:
        return CALLS[f"{section}/{name}"]
    arguments = BY_NAME.get(name.removesuffix("_"), "x")
    if section == "torch.Tensor" or section == "torch" and not callable(getattr(torch, name, None)):
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
