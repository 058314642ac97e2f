# SPDX-License-Identifier: Apache-2.0
"""The MLP that every contestant trains, as in mlp_task.hpp."""

import numpy as np

from task import hashed, uniform

BATCH, INPUTS, HIDDEN, CLASSES, BATCHES = 64, 784, 128, 10, 16
LEARNING_RATE, MOMENTUM = 0.1, 0.9
WARM = 10


def weights():
    """(out, in) weight and bias of both layers, uniform in ±1/sqrt(in)."""
    sizes = [(HIDDEN, INPUTS), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,)]
    fans = [INPUTS, INPUTS, HIDDEN, HIDDEN]
    out = []
    for stream, (shape, fan) in enumerate(zip(sizes, fans)):
        bound = np.float32(1 / np.sqrt(fan))
        u = uniform(stream, int(np.prod(shape)))
        out.append(((2 * u - 1) * bound).reshape(shape))
    return out


def batches():
    """A ring of (images, labels): noise, with every tenth pixel brighter where the label says."""
    n = BATCH * BATCHES
    labels = (hashed(4, n) % CLASSES).astype(np.int64)
    bright = np.arange(INPUTS)[None, :] % CLASSES == labels[:, None]
    images = uniform(5, n * INPUTS).reshape(n, INPUTS) - np.float32(0.5)
    images = (images + bright * np.float32(0.02)).astype(np.float32)
    return [(images[i : i + BATCH], labels[i : i + BATCH]) for i in range(0, n, BATCH)]
