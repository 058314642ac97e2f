#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the weights of a file of torch.save as safetensors: of a state_dict, or of a checkpoint that has one under
state_dict, model_state_dict, model, net, network or module, or as its largest dict of tensors. What DataParallel and
torch.compile put before names is left out, and so is all that is no tensor: the program says what.

    pip install torch safetensors && python to_safetensors.py resnet18.pth resnet18.safetensors

A file that holds objects of other libraries than torch and numpy is only read with --trust, which lets it run code."""
import argparse
import pickle
import re
import sys

import torch
from safetensors.torch import save_file

KNOWN = ("state_dict", "model_state_dict", "model", "net", "network", "module")


def harmless():
    """What checkpoints hold besides tensors: options of a command line, and numbers and arrays of numpy."""
    out = [argparse.Namespace]
    try:
        import numpy
        core = getattr(numpy, "_core", None) or numpy.core
        out += [numpy.ndarray, numpy.dtype, core.multiarray.scalar, core.multiarray._reconstruct]
        out += [type(numpy.dtype(kind)) for kind in "?bBhHiIlLqQefd"]
    except ImportError:
        pass
    return out


def load(path, trust):
    if trust:
        return torch.load(path, map_location="cpu", weights_only=False)
    try:
        with torch.serialization.safe_globals(harmless()):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        wanted = re.search(r"GLOBAL (\S+)", str(error))
        sys.exit(f"{path} holds {wanted[1] if wanted else 'objects'}, which only code of its own can make. If you trust "
                 "whoever wrote the file, add --trust")


def dicts(value, path=""):
    """The dicts in a value, with the way to each."""
    if isinstance(value, torch.nn.Module):
        value = value.state_dict()
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from dicts(inner, f"{path}.{key}" if path else str(key))


def weights(checkpoint):
    """The dict with the weights, and the way to it."""
    def tensors(found):
        return sum(value.numel() for value in found[1].values() if isinstance(value, torch.Tensor))

    all = [found for found in dicts(checkpoint) if tensors(found)]
    if not all:
        sys.exit("the file holds no dict of tensors")
    named = [found for found in all if found[0] == "" or found[0].split(".")[-1] in KNOWN]
    return max(named or all, key=tensors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--trust", action="store_true", help="read objects of any kind; the file may run code")
    args = parser.parse_args()
    checkpoint = load(args.source, args.trust)
    path, state = weights(checkpoint)
    kept = {re.sub(r"^((module|_orig_mod)\.)+", "", name): value.detach().contiguous().clone()
            for name, value in state.items() if isinstance(value, torch.Tensor)}
    save_file(kept, args.target, {"format": "pt"})
    print(f"{args.target}: {len(kept)} tensors" + (f" of {path}" if path else ""))
    left = [name for name, value in state.items() if not isinstance(value, torch.Tensor)]
    if path:
        left += [name for name in checkpoint if str(name) != path.split(".")[0]]
    if left:
        print("left out: " + ", ".join(map(str, left)))


main()
