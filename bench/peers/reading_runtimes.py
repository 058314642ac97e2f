# SPDX-License-Identifier: Apache-2.0
"""PyTorch's networks in a runtime that only reads.

reading_runtimes.py <onnxruntime|openvino|ncnn> <model> <threads> <folder>. The runtime computes in
float32, of a file that the network was converted to once, in a subfolder. It answers as
task.answer_ways says, and has one way, `frozen`.
"""

import os
import sys

import numpy as np
import torch

import models_torch
import task


def converted(folder, name, make):
    """The path of a file in the folder; make(path) writes it where it is not there yet."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        make(path)
    return path


def onnx_file(model, name, x, folder):
    """The model for inputs of x's sizes, which let a runtime plan ahead."""
    def export(path):
        with torch.no_grad():
            torch.onnx.export(model, (x,), path, input_names=["x"], output_names=["y"],
                              dynamo=True, external_data=False, verbose=False)
    return converted(folder, f"{name}_{'x'.join(map(str, x.shape))}.onnx", export)


class OnnxRuntime:
    def __init__(self, threads):
        import onnxruntime
        self.library, self.version, self.threads = onnxruntime, onnxruntime.__version__, threads

    def load(self, model, name, x, folder):
        options = self.library.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.graph_optimization_level = self.library.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = self.library.InferenceSession(
            onnx_file(model, name, x, folder), options, providers=["CPUExecutionProvider"])
        return lambda batch: session.run(None, {"x": batch})[0]


class OpenVino:
    def __init__(self, threads):
        import openvino
        self.library, self.version, self.threads = openvino, openvino.__version__, threads

    def load(self, model, name, x, folder):
        core = self.library.Core()
        network = core.compile_model(core.read_model(onnx_file(model, name, x, folder)), "CPU", {
            "INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32"})  # else bfloat16 where the processor has it
        request = network.create_infer_request()
        return lambda batch: request.infer([batch], share_inputs=True, share_outputs=True)[0]


class Ncnn:
    """It reads one sample at a time."""

    def __init__(self, threads):
        import ncnn
        self.library, self.version, self.threads = ncnn, ncnn.__version__, threads

    def load(self, model, name, x, folder):
        import pnnx
        stem = os.path.join(folder, name)

        def export(path):
            with torch.no_grad():
                pnnx.export(model, f"{stem}.pt", (x[:1],), fp16=False)
        converted(folder, f"{name}.ncnn.param", export)
        net = self.library.Net()
        net.opt.num_threads = self.threads
        net.load_param(f"{stem}.ncnn.param")
        net.load_model(f"{stem}.ncnn.bin")

        def read(batch):
            rows = []
            for sample in batch:
                extractor = net.create_extractor()
                whole = sample.dtype.kind == "i"  # its indices have 32 bits
                extractor.input("in0", self.library.Mat(sample.astype("int32") if whole else sample))
                status, out = extractor.extract("out0")
                if status:
                    raise RuntimeError(f"ncnn fails with {status}")
                rows.append(np.array(out))
            return np.stack(rows)
        return read


RUNTIMES = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "ncnn": Ncnn}


class Model:
    """A network, converted for each number of samples when it is first asked for."""

    def __init__(self, name, runtime, folder):
        self.name, self.runtime, self.folder, self.steps = name, runtime, folder, {}
        self.model = models_torch.make_model(name)
        models_torch.set_weights(self.model)
        self.model.eval()

    def step(self, what, way):
        if what not in self.steps:
            batch = int(what.removeprefix("reading"))
            made = models_torch.make_batches(self.name, batch, 4 // batch or 2)
            data = [x.numpy() for x, _ in made]
            read = self.runtime.load(self.model, self.name, made[0][0], self.folder)
            self.steps[what] = lambda i: read(data[i % len(data)])
        return self.steps[what]


def main():
    runtime, name, threads, folder = sys.argv[1:5]
    threads = int(threads)
    torch.set_num_threads(threads)
    made = RUNTIMES[runtime](threads)
    model = Model(name, made, os.path.join(folder, runtime))
    task.say(ready=runtime, version=made.version, ways={"reading": ["frozen"]})
    task.answer_ways(model, lambda y: float(np.abs(y.astype(np.float64)).sum()),
                     task.clock_of(threads))


if __name__ == "__main__":
    main()
