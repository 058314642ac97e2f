# SPDX-License-Identifier: Apache-2.0
"""Compares pytorch_functions.txt with the names that PyTorch 2.15 itself lists, and ends with 1 where they differ.

    pip install torch==2.15.0 numpy expecttest && python pytorch_names.py [--write]

--write adds what is missing, as not here, at the end of its section."""
import pathlib
import re
import sys

import torch
import torch.distributions
from torch.overrides import get_overridable_functions
from torch.testing._internal.common_methods_invocations import op_db

TABLE = pathlib.Path(__file__).parent / "pytorch_functions.txt"


def public(names):
    return {n for n in names if not n.startswith("_")}


def overridable(module):
    prefix = module.__name__.split(".")[-1] + "_"
    functions = get_overridable_functions()[module]
    return public(f.__name__.removeprefix(prefix) for f in functions if hasattr(f, "__name__"))


def operators():
    """Those that PyTorch's tests list, without operators of Python's and names of its own."""
    return {n for n in public(op.name for op in op_db) if "." not in n}


def functional():
    """What torch.nn.functional defines, without types and help for overrides."""
    helps = {"assert_int_or_pair", "boolean_dispatch", "handle_torch_function", "Tensor", "DType", "Optional", "Callable"}
    names = public(dir(torch.nn.functional))
    return {n for n in names - helps if callable(getattr(torch.nn.functional, n)) and n.islower() and
            not n.startswith("has_torch_function")}


def lists():
    """What torch and torch.nn.functional have at least: in the table their sections are those of PyTorch's
    documentation, which names some that are no functions of tensors."""
    return {"torch": operators(), "torch.nn.functional": functional()}


def sections():
    """The names of each of the other parts of PyTorch."""
    classes = {n for n in torch.nn.modules.__all__ if n not in ("Module", "Container")}
    schedules = set(torch.optim.lr_scheduler.__all__) - {"LRScheduler"}
    optimizers = {n for n in torch.optim.__all__ if n[0].isupper()} - {"Optimizer"}
    initialisers = {n for n in public(dir(torch.nn.init)) if n.endswith("_")} | {"calculate_gain"}
    return {
        "torch.nn: Modules": classes,
        "torch.nn.init: Initialisers": initialisers,
        "torch.optim: Optimizers": optimizers,
        "torch.optim.lr_scheduler: Schedules": schedules,
        "torch.distributions: Distributions": set(torch.distributions.__all__),
        "torch.linalg: Linear algebra": overridable(torch.linalg),
        "torch.fft: Fourier transforms": overridable(torch.fft),
        "torch.special: Special functions": overridable(torch.special),
        "torch.Tensor: Methods": overridable(torch.Tensor),
    }


def main():
    text = TABLE.read_text()
    parts = dict(re.findall(r"^\[(.*)\]\n((?:[^\[\n].*\n|\n)*)", text, re.M))
    said = {title: {line.split(" ")[0] for line in body.splitlines() if line} for title, body in parts.items()}
    differ = []
    for part, names in lists().items():
        there = set().union(*(of for title, of in said.items() if title.split(":")[0] in (part, "torch.nn.functional")))
        differ += [f"{part} lacks {n}" for n in sorted(names - there)]
    for title, names in sections().items():
        missing, gone = sorted(names - said.get(title, set())), sorted(said.get(title, set()) - names)
        differ += [f"{title} lacks {n}" for n in missing] + [f"{title} has {n}, PyTorch has not" for n in gone]
        if "--write" in sys.argv[1:] and missing:
            lines = "".join(f"{n} -\n" for n in missing)
            if title in parts:
                text = text.replace(f"[{title}]\n", f"[{title}]\n{lines}")
            else:
                text += f"\n[{title}]\n{lines}"
    if "--write" in sys.argv[1:]:
        TABLE.write_text(text)
    print("\n".join(differ) or "the table has all names")
    sys.exit(bool(differ))


main()
