# SPDX-License-Identifier: Apache-2.0
"""What depth costs a build: training steps whose layers are recorded one by one, and as a loop.

python3 bench/depth.py [folder]   compiles into the folder (default build/depth)
python3 bench/tables.py --take build/depth/results.json
                                  makes bench/results/depth.json of it
"""

import os
import sys

from build import code_bytes, compile_once
from contest import record_builds

REPEATS = 2  # the faster counts
DECODERS = (2, 24, 96)
# The header in xla/models, the data's form in model_cost.cpp, the model without and with the loop.
MODELS = {
    "ResNet-50": ("resnet", "image_model", "ResNet50<>",
                  "ResNet<xla::models::ResNetConfig{"
                  ".layers={3,4,6,3},.bottleneck=true,.scan_layers=true}>"),
    "BERT-base": ("bert", "text_model", "BertForSequenceClassification<>",
                  "BertForSequenceClassification<xla::models::BertConfig{.scan_layers=true}>"),
    "ViT-B/16": ("vit", "image_model", "VisionTransformer<>",
                 "VisionTransformer<xla::models::VisionTransformerConfig{.scan_layers=true}>"),
}
FLAGS = ["-std=c++20", "-O2", "-DXLA_EXTERN_RUNTIME", "-fconstexpr-ops-limit=4000000000",
         "-fconstexpr-loop-limit=100000000", "-fconstexpr-depth=4096"]
TARGETS = {24: (1.3, 600), 96: (1.5, 900)}  # times the loop of two layers, MB


def builds():
    """(name, layers of a decoder, as a loop, source, flags) of every build."""
    for layers in DECODERS:
        for loop in (False, True):
            flags = [f"-DLAYERS={layers}", *(["-DSCAN_LAYERS=true"] if loop else [])]
            yield f"decoder, {layers} layers", layers, loop, "capture_decoder.cpp", flags
    for name, (header, task, *models) in MODELS.items():
        for loop, model in enumerate(models):
            flags = ["-DCOST_TRAINING", f"-DHEADER=<xla/models/{header}.hpp>", f"-DTASK={task}",
                     f"-DMODEL={model}", "-include", "xla/loop/scan_layers.hpp"]
            yield name, None, bool(loop), "model_cost.cpp", flags


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(here)
    out = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, "build/depth"))
    os.makedirs(out, exist_ok=True)
    made = os.path.join(out, "depth.o")
    eigen = os.environ.get("EIGEN", "/usr/include/eigen3")
    command = ["g++", *FLAGS, f"-I{os.path.join(root, 'include')}", "-isystem", eigen, "-o", made]
    table = ["| training step | layers | user s | peak MB | code, KB |", "|---|---|---|---|---|"]
    print("\n".join(table))
    shallow, notes = None, []
    for name, layers, loop, source, flags in builds():
        seconds, megabytes = min(
            compile_once([*command, *flags, "-c", os.path.join(here, source)])
            for _ in range(REPEATS))
        how = "as a loop" if loop else "one by one"
        code = code_bytes(made) / 1000
        table.append(f"| {name} | {how} | {seconds:.1f} | {megabytes:.0f} | {code:.0f} |")
        print(table[-1], flush=True)
        if loop and layers == DECODERS[0]:
            shallow = seconds
        if loop and layers in TARGETS:
            times, most = TARGETS[layers]
            notes.append(f"{layers} layers as a loop take {seconds / shallow:.2f} times a loop of "
                         f"{DECODERS[0]} (target at most {times}) and {megabytes:.0f} MB ({most}).")
    os.remove(made)
    table += ["", *notes]
    print("\n".join(notes))
    record_builds(out, "depth", table)


if __name__ == "__main__":
    main()
