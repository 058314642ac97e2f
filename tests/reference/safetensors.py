#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/reference.safetensors with the format's own library, for tests/ext/safetensors.cpp; given a
path, shows what that library reads there.

    pip install safetensors==0.8.0 numpy && python safetensors.py [FILE]"""

import pathlib
import sys

sys.path.pop(0)  # this file has the library's name
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

if len(sys.argv) > 1:
    with safe_open(sys.argv[1], framework="numpy") as file:
        print(file.metadata())
        for name in file.keys():
            array = file.get_tensor(name)
            print(name, array.dtype, array.shape, array.ravel()[:8].tolist())
else:
    save_file(
        {
            "fc1.weight": np.array([[0.5, -1.25, 3e38], [np.inf, -0.0, 1e-45]], np.float32),
            "fc1.bias": np.array([1, 2, 3], np.float32),
            "double": np.array(0.1, np.float64),
            "int": np.array([-(2**31), 0, 7], np.int32),
            "long": np.array([[[1], [-(2**63)]]], np.int64),
            "bytes": np.array([0, 255, 1], np.uint8),
            "flags": np.array([True, False, True]),
            "nothing": np.zeros((0, 4), np.float32),
            "größe \"x\"": np.array([8], np.uint8),
        },
        pathlib.Path(__file__).parent.parent / "data" / "reference.safetensors",
        metadata={"made by": "safetensors 0.8.0", "quote": 'a "b" \n ü'},
    )
