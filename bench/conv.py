# SPDX-License-Identifier: Apache-2.0
"""Every distinct convolution of eight networks on 224 x 224 images and of one on sound, against
PyTorch's two memory formats, all in turn."""

import math
import os
import sys
from typing import NamedTuple

from contest import Program

WAYS = ("forward", "input gradient", "weight gradient")
FORMATS = ("channels_last", "contiguous_format")
ROUNDS = 3


class Layer(NamedTuple):
    """Square images and kernels, or, `column`, ones that are a column wide."""

    size: int
    inputs: int
    outputs: int
    kernel: int
    stride: int = 1
    groups: int = 1
    padding: int = -1  # half of the kernel
    column: bool = False

    def sides(self):
        return self.kernel // 2 if self.padding < 0 else self.padding

    def made(self):
        return (self.size + 2 * self.sides() - self.kernel) // self.stride + 1

    def flops(self, batch):
        axes = 1 if self.column else 2
        return 2 * batch * self.made()**axes * self.outputs * self.inputs // self.groups \
            * self.kernel**axes

    def words(self, batch):
        """The numbers that programs read: heights before widths, which are 1 in a column."""
        def second(n, of_column):
            return of_column if self.column else n

        return f"{batch} {self.size} {second(self.size, 1)} {self.inputs} {self.outputs} " \
            f"{self.kernel} {second(self.kernel, 1)} {self.stride} {second(self.stride, 1)} " \
            f"{self.sides()} {second(self.sides(), 0)} {self.groups}"

    def __str__(self):
        groups = "" if self.groups == 1 else f" in {self.groups}"
        width = 1 if self.column else self.kernel
        return f"{self.kernel}x{width}/{self.stride} {self.inputs}-{self.outputs}{groups} " \
            f"@{self.size}"


def resnet18():
    yield Layer(224, 3, 64, 7, 2)
    size, inputs = 56, 64
    for outputs in (64, 128, 256, 512):
        stride = 1 if outputs == 64 else 2
        yield Layer(size, inputs, outputs, 3, stride)
        if stride == 2:
            yield Layer(size, inputs, outputs, 1, 2)
        size, inputs = size // stride, outputs
        yield Layer(size, outputs, outputs, 3)


def resnet50(groups=1, width=1):
    """Of bottlenecks; ResNeXt-50 has 32 groups and twice the width."""
    yield Layer(224, 3, 64, 7, 2)
    size, inputs = 56, 64
    for planes in (64, 128, 256, 512):
        stride, inner, outputs = 1 if planes == 64 else 2, planes * width, 4 * planes
        yield Layer(size, inputs, inner, 1)
        yield Layer(size, inner, inner, 3, stride, groups)
        yield Layer(size, inputs, outputs, 1, stride)
        size, inputs = size // stride, outputs
        yield Layer(size, inner, outputs, 1)
        yield Layer(size, outputs, inner, 1)
        yield Layer(size, inner, inner, 3, 1, groups)


def alexnet():
    yield Layer(224, 3, 64, 11, 4, padding=2)
    yield Layer(27, 64, 192, 5)
    yield Layer(13, 192, 384, 3)
    yield Layer(13, 384, 256, 3)
    yield Layer(13, 256, 256, 3)


def inverted(size, inputs, settings):
    """Blocks of (factor, outputs, blocks, stride, kernel)."""
    for factor, outputs, blocks, stride, kernel in settings:
        for block in range(blocks):
            step, inner = stride if block == 0 else 1, inputs * factor
            if factor != 1:
                yield Layer(size, inputs, inner, 1)
            yield Layer(size, inner, inner, kernel, step, inner)
            size //= step
            yield Layer(size, inner, outputs, 1)
            inputs = outputs
    yield Layer(size, inputs, 1280, 1)


def mobilenet():
    yield Layer(224, 3, 32, 3, 2)
    yield from inverted(112, 32, ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3),
                                  (6, 64, 4, 2, 3), (6, 96, 3, 1, 3), (6, 160, 3, 2, 3),
                                  (6, 320, 1, 1, 3)))


def mnasnet():
    yield Layer(224, 3, 32, 3, 2)
    yield from inverted(112, 32, ((1, 16, 1, 1, 3), (3, 24, 3, 2, 3), (3, 40, 3, 2, 5),
                                  (6, 80, 3, 2, 5), (6, 96, 2, 1, 3), (6, 192, 4, 2, 5),
                                  (6, 320, 1, 1, 3)))


def vgg16():
    size, inputs = 224, 3
    for outputs, layers in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(layers):
            yield Layer(size, inputs, outputs, 3)
            inputs = outputs
        size //= 2


def squeezenet():
    yield Layer(224, 3, 64, 3, 2, padding=0)
    inputs = 64
    for size, squeezed, blocks in ((55, 16, 2), (27, 32, 2), (13, 48, 2), (13, 64, 2)):
        for _ in range(blocks):
            yield Layer(size, inputs, squeezed, 1)
            yield Layer(size, squeezed, 4 * squeezed, 1)
            yield Layer(size, squeezed, 4 * squeezed, 3)
            inputs = 8 * squeezed
    yield Layer(13, 512, 1000, 1)


def crepe():
    """CREPE tiny: the pitch of 1,024 samples, whose convolutions are (k, 1) on one column. Inputs
    have their zeros already, as 31 before and 32 after are no padding of PyTorch's."""
    yield Layer(1532, 1, 128, 512, 4, padding=0, column=True)
    size, inputs = 128, 128
    for outputs in (16, 16, 16, 32, 64):
        yield Layer(size + 63, inputs, outputs, 64, padding=0, column=True)
        size, inputs = size // 2, outputs


def layers():
    """Each once, with the networks that have it."""
    found = {}
    networks = {"ResNet-18": resnet18(), "ResNet-50": resnet50(), "ResNeXt-50": resnet50(32, 2),
                "AlexNet": alexnet(), "MobileNet-v2": mobilenet(), "MNASNet": mnasnet(),
                "VGG-16": vgg16(), "SqueezeNet": squeezenet(), "CREPE": crepe()}
    for name, network in networks.items():
        for layer in network:
            found.setdefault(layer, []).append(name)
    return {layer: sorted(set(names)) for layer, names in found.items()}


def check(answers, what):
    """Those who do not compute alike cannot be compared."""
    for name, answer in answers.items():
        if not abs(answer["sum"] - answers["xla"]["sum"]) <= 1e-4 * abs(answers["xla"]["sum"]):
            raise RuntimeError(f"{what}: {name} has a sum of {answer['sum']}, xla of "
                               f"{answers['xla']['sum']}")


def mixed(program, layer, batch, way):
    """How many times as fast as float32 it is in autocast, which leaves groups and few channels as
    they are."""
    if layer.groups > 1 or min(layer.inputs, layer.outputs) < 32:
        return None
    answers = [program.ask(f"mixed {way} {layer.words(batch)}") for _ in range(2)]
    return min(a["ns"] for a in answers) / min(a["mixed_ns"] for a in answers)


def row(team, layer, names, batch, way):
    """One layer in one direction: the least of some rounds of everyone."""
    least, peak = {}, 0.0
    for _ in range(ROUNDS):
        answers = {name: program.ask(f"run {way} {layer.words(batch)}")
                   for name, program in team.items()}
        check(answers, f"{layer}, {WAYS[way]}")
        peak = max(peak, answers["xla"]["peak"])
        for name, answer in answers.items():
            least[name] = min(least.get(name, math.inf), answer["ns"])
    ours, others = least.pop("xla"), least
    return {"layer": str(layer), "networks": names, "batch": batch, "way": WAYS[way],
            "dense": layer.groups == 1, "us": ours / 1e3, "peak": peak,
            "mixed": mixed(team["xla"], layer, batch, way),
            "share": layer.flops(batch) / ours / peak,
            "peers_us": {name: ns / 1e3 for name, ns in others.items()},
            "ratio": min(others.values()) / ours if others else None}


def measure(programs, peers, threads, batches=(1, 8), only=""):
    """A row for each layer, batch and direction; `only` is a part of a layer's or network's
    name."""
    n = str(threads)
    team = {"xla": Program([os.path.join(programs, "bench_conv"), n], threads)}
    if peers:
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers", "conv_torch.py")
        environment = {"OMP_NUM_THREADS": n, "MKL_NUM_THREADS": n, "PYTHONUNBUFFERED": "1",
                       "LD_PRELOAD": os.path.join(programs, "libbench_mkl.so")}
        for name in FORMATS:
            team[name] = Program([peers, script, name, n], threads, environment)
    rows = []
    for layer, names in layers().items():
        if only not in " ".join([str(layer), *names]):
            continue
        for batch in batches:
            for way in range(len(WAYS)):
                rows.append(row(team, layer, names, batch, way))
                rows[-1]["threads"] = threads
        print(f"  {layer}", file=sys.stderr)
    for program in team.values():
        program.close()
    return rows


def mean(rows):
    return math.exp(sum(math.log(r["ratio"]) for r in rows) / len(rows))


def show_mixed(rows):
    """What autocast gains and where it loses."""
    dense = [r for r in rows if r["mixed"]]
    slow = sorted((r for r in dense if r["mixed"] < 0.95), key=lambda r: r["mixed"])
    middle = math.exp(sum(math.log(r["mixed"]) for r in dense) / len(dense))
    print(f"  autocast: {middle:.2f} times as fast as float32 in the geometric mean; below 0.95 "
          f"(target none): {len(slow)} of {len(dense)}")
    for r in slow:
        print(f"    {r['mixed']:.2f}  {r['layer']}, batch {r['batch']}, {r['way']}")


def show(rows):
    print("\nConvolutions: share of the peak, and how many times as fast as the better of "
          "PyTorch's memory formats")
    print(f"  {'':24}{'batch':>6}  " + "".join(f"{way:>20}" for way in WAYS))
    for i in range(0, len(rows), len(WAYS)):
        some = rows[i:i + len(WAYS)]
        cells = "".join(f"{r['share']:12.0%}" + (f"{r['ratio']:6.2f} x" if r["ratio"] else " " * 8)
                        for r in some)
        print(f"  {some[0]['layer']:24}{some[0]['batch']:6}  {cells}  "
              f"{some[0]['threads']} thread(s)  {', '.join(some[0]['networks'])}")
    if any(r["mixed"] for r in rows):
        show_mixed(rows)
    if rows[0]["ratio"] is None:
        return
    dense, slow = [r for r in rows if r["dense"]], [r for r in rows if r["ratio"] < 0.9]
    print(f"  geometric mean {mean(rows):.2f} (target 1.5), of the dense ones "
          f"{mean(dense):.2f} (target 1.3); below 0.9 (target none): {len(slow)} of {len(rows)}")
    for r in sorted(slow, key=lambda r: r["ratio"]):
        print(f"    {r['ratio']:.2f}  {r['layer']}, batch {r['batch']}, {r['way']}")


if __name__ == "__main__":
    # conv.py <folder of programs> <python with torch> [<threads> [<part of a name>]]
    show(measure(*sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 1,
                 only=sys.argv[4] if len(sys.argv) > 4 else ""))
