# SPDX-License-Identifier: Apache-2.0
"""Networks of images in PyTorch: images_torch.py <eager|compile|frozen> <threads>
<convnet|resnet18|resnet18_read> [memory].

Each way has variants that users write; the fastest on this machine contends. The first is weighed.
"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

import images_task as images
import task
from models_torch import set_weights

FORMATS = ("channels_last", "contiguous_format")
LABELS = {"eager": "PyTorch eager", "compile": "torch.compile", "frozen": "PyTorch frozen"}
PLAIN = {"dynamic": False}
TUNED = {"dynamic": False, "mode": "max-autotune-no-cudagraphs"}
FROZEN = {"dynamic": False, "options": {"freezing": True}}
TUNED_FROZEN = {"dynamic": False, "options": {"freezing": True, "max_autotune": True}}


class Convnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.fc1, self.fc2 = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))


def make_model(name, order):
    if name == "convnet":
        model = Convnet()
    else:
        import torchvision
        model = torchvision.models.resnet18()
    return model.to(memory_format=order) if order else model


def training(name, data, order, how, options=None):
    """(reset, step): the step function as in the documentation; with options forward and loss are
    compiled, and the update where it is not fused."""
    order = getattr(torch, order)
    model = make_model(name, order)
    optimizer = torch.optim.SGD(model.parameters(), lr=images.LEARNING_RATE,
                                momentum=images.MOMENTUM, **{how: True})
    data = [(x.contiguous(memory_format=order), y) for x, y in data]

    def loss_of(x, y):
        return F.cross_entropy(model(x), y)

    update = optimizer.step
    if options:
        loss_of = torch.compile(loss_of, **options)
        if how != "fused":
            update = torch.compile(update)

    def reset():
        optimizer.zero_grad()
        set_weights(model)
        for state in optimizer.state.values():
            state["momentum_buffer"].zero_()

    def step(i):
        optimizer.zero_grad()
        loss = loss_of(*data[i])
        loss.backward()
        update()
        return loss

    return reset, step


def reading(name, data, order, frozen, options=None):
    """(reset, step) of a network that is read alone."""
    order = getattr(torch, order)
    model = make_model(name, order).eval()
    set_weights(model)
    data = [x.contiguous(memory_format=order) for x, _ in data]
    if frozen:
        with torch.no_grad():
            model = torch.jit.optimize_for_inference(torch.jit.trace(model, data[0]))
    if options:
        model = torch.compile(model, **options)

    def step(i):
        with torch.no_grad() if frozen or options else torch.inference_mode():
            return model(data[i])

    return lambda: None, step


def variants_of(way, name, data):
    if name == "resnet18_read":
        ways = {"eager": {"": (False, None)}, "frozen": {"": (True, None)},
                "compile": {"frozen ": (False, FROZEN), "tuned ": (False, TUNED_FROZEN)}}
        make = reading
    else:
        ways = {"eager": {"fused ": ("fused",), "foreach ": ("foreach",)},
                "compile": {"loss+fused ": ("fused", PLAIN), "loss+update ": ("foreach", PLAIN),
                            "tuned loss+fused ": ("fused", TUNED)}}
        make = training
    return {title + order: lambda order=order, a=arguments: make(name, data, order, *a)
            for title, arguments in ways[way].items() for order in FORMATS}


def main():
    way, threads, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    loaded = task.resident("VmRSS")
    torch.set_num_threads(threads)
    torch.set_flush_denormal(False)
    t = images.TASKS[name]
    data = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in images.batches(t)]
    variants = variants_of(way, name, data)

    def finish(made):
        return made.item() if made.dim() == 0 else made.double().abs().sum().item()

    if sys.argv[4:] == ["memory"]:
        # The batches are stored once, in the format of the variant that is weighed.
        data[:] = [(x.contiguous(memory_format=torch.channels_last), y) for x, y in data]
        reset, step = next(iter(variants.values()))()
        with torch.device("meta"):
            state = 2 * 4 * sum(p.numel() for p in make_model(name, None).parameters())
        task.weigh(LABELS[way], state, reset, step, finish, [(0,), (1,), (2,)], loaded)
        return
    clock = task.clock_of(threads)
    variant, reset, step = task.fastest(f"images_torch {way} {name}", variants, [(0,), (1,)], finish,
                                        3 if name == "resnet18" else 20, clock)
    task.serve(LABELS[way], f"{torch.__version__} ({variant})",
               torch.backends.cpu.get_cpu_capability(), reset, step, finish, t.batches, t.warm,
               clock)


if __name__ == "__main__":
    main()
