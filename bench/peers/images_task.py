# SPDX-License-Identifier: Apache-2.0
"""The networks of images that every contestant trains, as in images_task.hpp."""

import math
from typing import NamedTuple

import numpy as np

from task import hashed, uniform


class Task(NamedTuple):
    batch: int
    channels: int
    size: int
    classes: int
    batches: int
    warm: int


TASKS = {"convnet": Task(64, 1, 28, 10, 16, 5), "resnet18": Task(8, 3, 224, 1000, 4, 2),
         "resnet18_read": Task(1, 3, 224, 1000, 4, 2)}
LEARNING_RATE, MOMENTUM = 0.001, 0.9


def weight(number, name, shape):
    """Parameter `number` of a network: kernels and matrices within sqrt(6 / fan in) of 0, biases
    0, scales 1."""
    if len(shape) == 1:
        return np.full(shape, 0 if name.endswith(".bias") else 1, np.float32)
    n = math.prod(shape)
    bound = np.float32(math.sqrt(6 / (n // shape[0])))
    return ((2 * uniform(number, n) - 1) * bound).reshape(shape)


def batches(t):
    """(images, labels): noise, in which every classes-th pixel is brighter, from the label's on."""
    samples, pixels = t.batches * t.batch, t.channels * t.size**2
    labels = (hashed(1000, samples) % np.uint32(t.classes)).astype(np.int64)
    images = uniform(1001, samples * pixels).reshape(samples, pixels) - np.float32(0.5)
    images += np.float32(0.5) * (np.arange(pixels) % t.classes == labels[:, None])
    images = images.reshape(t.batches, t.batch, t.channels, t.size, t.size)
    return list(zip(images, labels.reshape(t.batches, t.batch)))
