# SPDX-License-Identifier: Apache-2.0
"""Writes models.txt: names and sizes of the states of torchvision's models, and what small ones of them compute, in double, from
weights that both sides make by one formula (support/models.hpp).

    pip install torch==2.15.0 torchvision numpy && python models.py"""
import math

import numpy
import torch
import torchvision.models as models
from torch import nn
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

import cases


def numbers(sizes, seed):
    """cases.numbers, of many."""
    with numpy.errstate(over="ignore"):
        i = numpy.arange(math.prod(sizes), dtype=numpy.uint64)
        x = numpy.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64) + i * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        x = (x ^ (x >> numpy.uint64(31))) >> numpy.uint64(40)
    return torch.from_numpy(x.astype(numpy.float64) / 2**21 - 4).reshape(sizes)


def fill(model):
    """The numbers of a state have its place as their seed; weights are as large as He's uniform ones."""
    state = model.state_dict()
    for place, (name, value) in enumerate(state.items()):
        if value.dtype == torch.int64:
            continue
        if value.dim() > 1:
            scaled = numbers(value.shape, place) * numpy.float32(math.sqrt(6 / value[0].numel()) / 4)
        elif name.endswith("bias") or name.endswith("mean"):
            scaled = numbers(value.shape, place) / 16
        else:
            scaled = 1 + numbers(value.shape, place) / 16
        state[name] = scaled.to(torch.float32).to(torch.float64)
    model.load_state_dict(state)
    return model


def states(name, model):
    for key, value in model.state_dict().items():
        cases.out.append(" ".join([f"states/{name}", key, *map(str, value.shape)]))


def norms(tensors):
    return torch.stack([t.norm() for t in tensors])


def batch(sizes, seed=1000):
    return numbers(sizes, seed) / 4, torch.tensor([3, 7, 0, 9])[: sizes[0]]


def evaluate(name, model, sizes):
    cases.write(f"models/{name}/logits", fill(model).eval()(batch(sizes)[0]))


def train(name, model, sizes, lr):
    """Evaluation, then five steps: their losses, norms of the first one's gradients, and of the buffers that are left."""
    evaluate(name, model, sizes)
    images, labels = batch(sizes)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for step in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        if step == 0:
            cases.write(f"models/{name}/gradients", norms([p.grad for p in model.parameters()]))
        optimizer.step()
        losses.append(loss)
    cases.write(f"models/{name}/losses", torch.stack(losses))
    buffers = [b for b in model.buffers() if b.is_floating_point()]
    if buffers:
        cases.write(f"models/{name}/buffers", norms(buffers))


def train_as_the_seed_does(name, model):
    """A new optimizer for each batch, and gradients that add up: the prediction for each."""
    model = fill(model).train()
    for i in range(3):
        images, labels = batch((4, 3, 48, 48), 1000 + 3 * i)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1e-2)
        pred = model(images)
        nn.functional.cross_entropy(pred, labels).backward()
        optimizer.step()
        cases.write(f"models/{name}/pred{i}", pred)


def narrow_mnasnet():
    model = models.MNASNet(0.25, 10, 0)
    for stack, blocks in enumerate((1, 2, 1, 1, 1, 1)):
        model.layers[8 + stack] = model.layers[8 + stack][:blocks]
    return model


def with_hidden(model, *widths):
    """Other widths of the linear layers."""
    linear = [i for i, m in enumerate(model.classifier) if isinstance(m, nn.Linear)]
    for i, a, b in zip(linear, widths, widths[1:]):
        model.classifier[i] = nn.Linear(a, b)
    return model


def narrow_vgg():
    features = models.vgg.make_layers([8, "M", 16, "M", 24, 24, "M", 32, "M", 32, 32, "M"])
    with torch.device("meta"):
        model = models.VGG(features, 10, False, 0)
    return with_hidden(model, 32 * 7 * 7, 40, 40, 10)


def narrow_alexnet():
    return with_hidden(models.AlexNet(10, 0), 256 * 6 * 6, 24, 24, 10)


torch.set_num_threads(1)
for name in ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "alexnet", "vgg11", "vgg13", "vgg16", "vgg19",
             "squeezenet1_1", "mobilenet_v2", "mnasnet1_0"):
    with torch.device("meta"):
        states(name, getattr(models, name)())
torch.set_default_dtype(torch.float64)
evaluate("resnet18", models.resnet18(num_classes=10), (4, 3, 48, 48))
train_as_the_seed_does("resnet18", models.resnet18(num_classes=10))
train("basic_blocks", ResNet(BasicBlock, [1, 1, 1, 1], 10), (4, 3, 35, 41), 0.001)
train("bottlenecks/ungrouped", ResNet(Bottleneck, [1, 1, 1, 1], 10, width_per_group=16), (4, 3, 35, 41), 0.001)
train("bottlenecks", ResNet(Bottleneck, [2, 1, 1, 1], 10, groups=4, width_per_group=8), (4, 3, 35, 41), 0.001)
train("mobilenet_v2/narrow", models.MobileNetV2(10, 0.25, [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 1, 2]], dropout=0), (4, 3, 33, 39), 0.01)
train("mnasnet/narrow", narrow_mnasnet(), (4, 3, 65, 71), 0.01)
train("vgg/narrow", narrow_vgg(), (4, 3, 32, 39), 0.001)
train("alexnet/narrow", narrow_alexnet(), (2, 3, 63, 71), 0.0001)
train("squeezenet1_1", models.SqueezeNet("1_1", 10, 0), (2, 3, 33, 42), 0.0003)
evaluate("mobilenet_v2", models.MobileNetV2(10), (2, 3, 64, 75))
evaluate("mnasnet1_0", models.MNASNet(1.0, 10), (2, 3, 64, 75))
cases.save(__file__, "models.txt")
