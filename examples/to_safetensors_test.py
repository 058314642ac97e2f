#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""to_safetensors_test.py <tests/data>          what needs no torch: which weights a checkpoint has, files byte by byte
to_safetensors_test.py <tests/data> torch    files of torch.save; ends with 77 where torch is not installed"""
import argparse
import fractions
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import to_safetensors as script

DATA = sys.argv[1]
WITH_TORCH = sys.argv[2:] == ["torch"]
if WITH_TORCH:
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed")
        sys.exit(77)


def read(path):
    """Of each name of a safetensors file its type, shape and bytes; and the metadata."""
    with open(path, "rb") as file:
        whole = file.read()
    size = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8:8 + size])
    data = whole[8 + size:]
    metadata = header.pop("__metadata__", None)
    return {name: (entry["dtype"], tuple(entry["shape"]), data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}, metadata


class Tensor:
    """What the choice of weights looks at."""
    def __init__(self, size):
        self.size = size

    def numel(self):
        return self.size


def is_tensor(value):
    return isinstance(value, Tensor)


@unittest.skipIf(WITH_TORCH, "tested without torch")
class WithoutTorch(unittest.TestCase):
    def chosen(self, checkpoint):
        return script.weights(checkpoint, is_tensor)[0]

    def test_weights_are_found_by_name_or_by_size(self):
        net, large = {"w": Tensor(10)}, {"m": Tensor(1000)}
        self.assertEqual(self.chosen(net), "")
        self.assertEqual(self.chosen({"epoch": 3, "model_state_dict": net, "optimizer": {"state": large}}),
                         "model_state_dict")
        self.assertEqual(self.chosen({"a": net, "b": {"c": large}}), "b.c")
        self.assertEqual(self.chosen({"generator": {"net": {"w": Tensor(5)}, "ema": large}}), "generator.net")

    def test_a_module_stands_for_its_state(self):
        class Module:
            def state_dict(self):
                return {"w": Tensor(3)}
        path, state = script.weights({"lr": 0.1, "model": Module()}, is_tensor)
        self.assertEqual((path, list(state)), ("model", ["w"]))

    def test_a_file_without_tensors_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "the file holds no dict of tensors"):
            script.weights({"epoch": 3, "state_dict": {}}, is_tensor)

    def test_names_lose_the_prefixes_of_wrappers(self):
        self.assertEqual(script.own_name("module.fc.weight"), "fc.weight")
        self.assertEqual(script.own_name("_orig_mod.module.fc.weight"), "fc.weight")
        self.assertEqual(script.own_name("head.module.weight"), "head.module.weight")

    def test_what_is_no_weight_is_named(self):
        state = {"w": Tensor(1), "version": 2}
        checkpoint = {"epoch": 3, "model": state, "args": None}
        self.assertEqual(script.left_out(checkpoint, "model", state, is_tensor), ["version", "epoch", "args"])
        self.assertEqual(script.left_out(state, "", state, is_tensor), ["version"])

    def written_again(self, file):
        """The bytes of a file of the library safetensors, and of one with the same tensors."""
        tensors, _ = read(os.path.join(DATA, file))
        dtypes = {kind: dtype for dtype, (kind, _) in script.KINDS.items()}
        described = {name: (dtypes[kind], shape) for name, (kind, shape, _) in tensors.items()}
        with tempfile.TemporaryDirectory() as folder:
            again = os.path.join(folder, "again.safetensors")
            script.write_safetensors(again, described, lambda name: tensors[name][2])
            self.assertEqual(read(again), (tensors, {"format": "pt"}))
            with open(again, "rb") as new, open(os.path.join(DATA, file), "rb") as original:
                return new.read(), original.read()

    def test_a_file_is_as_the_library_safetensors_writes_it(self):
        for file in ("vit_float16.safetensors", "bert_bfloat16.safetensors"):
            new, original = self.written_again(file)
            self.assertEqual(new, original)
        self.written_again("reference.safetensors")  # of many types

    def test_every_tensor_is_aligned_and_follows_the_last(self):
        tensors = {"b": ("bool", (3,)), "é": ("float32", (2, 1)), "a": ("int64", ()), "none": ("bfloat16", (0, 4)),
                   "h": ("bfloat16", (5,))}
        sizes = {name: script.KINDS[dtype][1] for name, (dtype, _) in tensors.items()}
        data = {"b": b"\1\0\1", "é": bytes(range(8)), "a": bytes(8), "none": b"", "h": bytes(range(10))}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "f.safetensors")
            script.write_safetensors(path, tensors, data.get)
            with open(path, "rb") as file:
                whole = file.read()
            size = struct.unpack("<Q", whole[:8])[0]
            self.assertEqual(size % 8, 0)
            entries = json.loads(whole[8:8 + size])
            del entries["__metadata__"]
            at = 0
            for name, entry in entries.items():
                self.assertEqual(entry["data_offsets"][0], at)
                self.assertEqual(at % sizes[name], 0)
                at = entry["data_offsets"][1]
            self.assertEqual(len(whole), 8 + size + at)
            self.assertEqual({name: tensor[2] for name, tensor in read(path)[0].items()}, data)

    def test_a_type_that_files_do_not_have_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "w is of complex64, which safetensors files do not hold"):
            script.write_safetensors("never.safetensors", {"w": ("complex64", (2,))}, None)


@unittest.skipUnless(WITH_TORCH, "needs torch")
class WithTorch(unittest.TestCase):
    def convert(self, saved, *options):
        """Of a value: what the program prints, its exit status, and the file's tensors."""
        with tempfile.TemporaryDirectory() as folder:
            source, target = (os.path.join(folder, name) for name in ("s.pt", "t.safetensors"))
            torch.save(saved, source)
            done = subprocess.run([sys.executable, script.__file__, source, target, *options],
                                  capture_output=True, text=True)
            tensors = read(target)[0] if os.path.exists(target) else None
        return (done.stdout + done.stderr).replace(folder + os.sep, ""), done.returncode, tensors

    def test_a_checkpoint(self):
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        state = {"module." + name: value for name, value in model.state_dict().items()}
        state["module.half"] = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3).t()  # not contiguous
        state["module.tied"] = state["module.0.weight"]
        said, status, tensors = self.convert({"epoch": 3, "args": argparse.Namespace(lr=0.1), "state_dict": state})
        self.assertEqual((said, status), (f"t.safetensors: {len(state)} tensors of state_dict\n"
                                          "left out: epoch, args\n", 0))
        self.assertEqual(set(tensors), {name.removeprefix("module.") for name in state})
        for name, value in state.items():
            kind, shape, data = tensors[name.removeprefix("module.")]
            self.assertEqual(kind, script.KINDS[str(value.dtype).removeprefix("torch.")][0])
            self.assertEqual(shape, tuple(value.shape))
            there = torch.frombuffer(bytearray(data), dtype=value.dtype).reshape(shape)
            self.assertTrue(torch.equal(there, value), name)

    def test_objects_need_trust(self):
        saved = {"model": {"w": torch.ones(2)}, "ratio": fractions.Fraction(1, 2)}
        said, status, tensors = self.convert(saved)
        self.assertIn("s.pt holds fractions.Fraction, which only code of its own can make", said)
        self.assertEqual((status, tensors), (1, None))
        said, status, tensors = self.convert(saved, "--trust")
        self.assertEqual((said, status), ("t.safetensors: 1 tensors of model\nleft out: ratio\n", 0))
        self.assertEqual(tensors["w"][1], (2,))


unittest.main(argv=sys.argv[:1])
