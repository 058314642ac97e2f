#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the weights of a file of torch.save as safetensors: of a state_dict, or of a checkpoint that has one under
state_dict, model_state_dict, model, net, network or module, or as its largest dict of tensors. What DataParallel and
torch.compile put before names is left out, and so is all that is no tensor: the program says what.

    pip install torch && python to_safetensors.py resnet18.pth resnet18.safetensors

A file that holds objects of other libraries than torch and numpy is only read with --trust, which lets it run code."""
import argparse
import ctypes
import json
import math
import pickle
import re
import struct
import sys

KNOWN = ("state_dict", "model_state_dict", "model", "net", "network", "module")
# What safetensors calls torch's types, and the bytes of an element.
KINDS = {"float64": ("F64", 8), "float32": ("F32", 4), "float16": ("F16", 2), "bfloat16": ("BF16", 2),
         "float8_e4m3fn": ("F8_E4M3", 1), "float8_e5m2": ("F8_E5M2", 1), "int64": ("I64", 8), "int32": ("I32", 4),
         "int16": ("I16", 2), "int8": ("I8", 1), "uint64": ("U64", 8), "uint32": ("U32", 4), "uint16": ("U16", 2),
         "uint8": ("U8", 1), "bool": ("BOOL", 1)}


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
    import torch
    if trust:
        return torch.load(path, map_location="cpu", weights_only=False)
    try:
        with torch.serialization.safe_globals(harmless()):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        wanted = re.search(r"GLOBAL (\S+)", str(error))
        sys.exit(f"{path} holds {wanted[1] if wanted else 'objects'}, which only code of its own can make. If you trust "
                 "the file's author, add --trust")


def dicts(value, path=""):
    """The dicts in a value, with the way to each. A module stands for its state_dict."""
    if callable(getattr(value, "state_dict", None)):
        value = value.state_dict()
    if isinstance(value, dict):
        yield path, value
        for key, inner in value.items():
            yield from dicts(inner, f"{path}.{key}" if path else str(key))


def weights(checkpoint, is_tensor):
    """The dict with the weights, and the way to it."""
    def tensors(found):
        return sum(value.numel() for value in found[1].values() if is_tensor(value))

    all = [found for found in dicts(checkpoint) if tensors(found)]
    if not all:
        sys.exit("the file holds no dict of tensors")
    named = [found for found in all if found[0] == "" or found[0].split(".")[-1] in KNOWN]
    return max(named or all, key=tensors)


def own_name(name):
    """Without what DataParallel and torch.compile put before it."""
    return re.sub(r"^((module|_orig_mod)\.)+", "", name)


def left_out(checkpoint, path, state, is_tensor):
    """The names of what is in the file, and is no weight."""
    out = [name for name, value in state.items() if not is_tensor(value)]
    if path:
        out += [name for name in checkpoint if str(name) != path.split(".")[0]]
    return [str(name) for name in out]


def write_safetensors(path, tensors, bytes_of):
    """Of each name the type as torch calls it and the shape; bytes_of(name) gives the elements, row by row."""
    for name, (dtype, _) in tensors.items():
        if dtype not in KINDS:
            sys.exit(f"{name} is of {dtype}, which safetensors files do not hold")
    order = sorted(tensors, key=lambda name: (-KINDS[tensors[name][0]][1], name))  # so that all are aligned
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name in order:
        dtype, shape = tensors[name]
        kind, size = KINDS[dtype]
        begin, end = end, end + size * math.prod(shape)
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            file.write(bytes_of(name))


def elements(tensor):
    flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--trust", action="store_true", help="read objects of any kind; the file may run code")
    args = parser.parse_args()
    import torch

    def is_tensor(value):
        return isinstance(value, torch.Tensor)

    checkpoint = load(args.source, args.trust)
    path, state = weights(checkpoint, is_tensor)
    kept = {own_name(name): value for name, value in state.items() if is_tensor(value)}
    described = {name: (str(t.dtype).removeprefix("torch."), tuple(t.shape)) for name, t in kept.items()}
    write_safetensors(args.target, described, lambda name: elements(kept[name]))
    print(f"{args.target}: {len(kept)} tensors" + (f" of {path}" if path else ""))
    left = left_out(checkpoint, path, state, is_tensor)
    if left:
        print("left out: " + ", ".join(left))


if __name__ == "__main__":
    main()
