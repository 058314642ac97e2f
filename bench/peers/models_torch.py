# SPDX-License-Identifier: Apache-2.0
"""The ten models of bench/models.py in PyTorch: models_torch.py <model> <threads> [memory].

What it answers says task.answer_ways.
"""

import contextlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

import images_task as images
import reading_nets
import task

CLASSES, SIZE = 1000, 224
TOKENS = 128
FROZEN = {"options": {"freezing": True}}
MIXED = "+autocast"


class Logits(nn.Module):
    """A model of transformers as a function of tensors."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, tokens):
        return self.net(input_ids=tokens).logits


def make_model(name):
    if name in reading_nets.NETS:
        return reading_nets.NETS[name]()
    if name == "bert":
        import transformers
        return Logits(transformers.BertForSequenceClassification(transformers.BertConfig()))
    if name == "vit":
        import timm
        return timm.create_model("vit_base_patch16_224")
    import torchvision
    keywords = {"init_weights": False} if name == "vgg16" else {}
    return getattr(torchvision.models, name)(**keywords)


def set_weights(model):
    with torch.no_grad():
        for number, (name, p) in enumerate(model.named_parameters()):
            p.copy_(torch.from_numpy(images.weight(number, name, p.shape)))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
    reading_nets.set_slopes(model)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=images.LEARNING_RATE, momentum=images.MOMENTUM,
                           fused=True)


def make_batches(name, batch, count):
    if name in reading_nets.NETS:
        return reading_nets.make_batches(name, batch, count)
    if name == "bert":
        return reading_nets.make_texts(batch, count, TOKENS)
    made = images.batches(images.Task(batch, 3, SIZE, CLASSES, count, 0))
    return [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in made]


def precision(mixed):
    """What a forward pass runs in; only losses are outside."""
    return torch.autocast("cpu", torch.bfloat16) if mixed else contextlib.nullcontext()


class Model:
    """One network in all of PyTorch's modes, each made when it is first asked for."""

    def __init__(self, name):
        self.name = name
        images_only = name == "pnet" or name not in ("bert", *reading_nets.NETS)
        self.orders = ["channels_last", "contiguous"] if images_only else ["eager"]
        # Compiled and frozen graphs choose their own order; patches of a transformer are rows.
        self.best_order = "contiguous" if name == "vit" else self.orders[0]
        self.models, self.steps = {}, {}

    def ways(self):
        reading = [*self.orders, "compile", "compile_frozen"]
        training = [*self.orders, "compile"]
        return {"training": training, "reading": [*reading, "frozen"],
                "training_autocast": [way + MIXED for way in training],
                "reading_autocast": [way + MIXED for way in reading]}

    def ordered(self, x, order):
        return x.contiguous(memory_format=torch.channels_last) if order == "channels_last" else x

    def new_model(self, order):
        model = make_model(self.name)
        set_weights(model)
        model = task.on_device(model)
        if order == "channels_last":
            model = model.to(memory_format=torch.channels_last)
        return model

    def model(self, order):
        if order not in self.models:
            self.models[order] = self.new_model(order)
        return self.models[order]

    def batches(self, order, batch, count):
        return [(self.ordered(task.on_device(x), order), task.on_device(y))
                for x, y in make_batches(self.name, batch, count)]

    def order_of(self, way):
        return way if way in self.orders else self.best_order

    def training(self, way):
        way, mixed = way.removesuffix(MIXED), way.endswith(MIXED)
        order = self.order_of(way)
        model = self.model(order).train()
        data = self.batches(order, 8, 2)
        optimizer = sgd(model)

        def loss_of(x, y):
            with precision(mixed):
                logits = model(x)
            return F.cross_entropy(logits.float(), y)

        if way == "compile":
            loss_of = torch.compile(loss_of, dynamic=False)

        def step(i):
            optimizer.zero_grad()
            loss = loss_of(*data[i % len(data)])
            loss.backward()
            optimizer.step()
            return loss

        return step

    def reading(self, way, batch):
        way, mixed = way.removesuffix(MIXED), way.endswith(MIXED)
        order = self.order_of(way)
        model = self.model(order).eval()
        data = [self.ordered(x, order) for x, _ in make_batches(self.name, batch, 4 // batch or 2)]
        if way == "frozen":
            with torch.no_grad():
                model = torch.jit.optimize_for_inference(torch.jit.trace(model, data[0]))
        elif way.startswith("compile"):
            model = torch.compile(model, dynamic=False, **(FROZEN if "frozen" in way else {}))

        def step(i):
            with torch.inference_mode() if way == order else torch.no_grad(), precision(mixed):
                return model(data[i % len(data)])

        return step

    def step(self, what, way):
        if (what, way) not in self.steps:
            if what.startswith("reading"):
                made = self.reading(way, int(what[len("reading"):]))
            else:
                made = self.training(way)
            self.steps[what, way] = made
        return self.steps[what, way]

    def check(self, training, mixed):
        """Losses of three clipped steps on two samples, without dropout in training."""
        order = self.orders[0]
        model = self.new_model(order).train(training)
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        (x, y), = self.batches(order, 2, 1)
        optimizer = sgd(model)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            with precision(mixed):
                logits = model(x)
            loss = F.cross_entropy(logits.float(), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        return losses


def finish(made):
    return made.item() if made.dim() == 0 else made.double().abs().sum().item()


def main():
    name, threads = sys.argv[1], int(sys.argv[2])
    loaded = task.resident("VmRSS")
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)
    model = Model(name)
    if sys.argv[3:] == ["memory"]:
        step = model.training(model.orders[0])
        state = 2 * 4 * sum(p.numel() for p in model.model(model.orders[0]).parameters())
        task.weigh("PyTorch eager", state, lambda: None, step, finish, [(0,), (1,)], loaded)
        return
    clock = task.clock_of(threads)
    task.say(ready="PyTorch", version=torch.__version__,
             isa=torch.backends.cpu.get_cpu_capability(), ways=model.ways())
    task.answer_ways(model, finish, clock)


if __name__ == "__main__":
    main()
