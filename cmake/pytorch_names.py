# SPDX-License-Identifier: Apache-2.0
"""Compares pytorch_functions.txt with the names that PyTorch 2.15 itself lists, and ends with 1 where they differ.

    pip install torch==2.15.0 numpy && python pytorch_names.py [--write]

--write adds what is missing, as not here, at the end of its section."""
import pathlib
import re
import sys

import torch
import torch.distributions
from torch.overrides import get_overridable_functions

TABLE = pathlib.Path(__file__).parent / "pytorch_functions.txt"


def public(names):
    return {n for n in names if not n.startswith("_")}


def overridable(module):
    prefix = module.__name__.split(".")[-1] + "_"
    functions = get_overridable_functions()[module]
    return public(f.__name__.removeprefix(prefix) for f in functions if hasattr(f, "__name__"))


def sections():
    """The names of each part of PyTorch. torch and torch.nn.functional stand in the table in the sections of its
    documentation, which name some that are no functions of tensors."""
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
