#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the weights of a .pth file, a state_dict or a checkpoint with one, as safetensors. What DataParallel and
torch.compile put before names is left out.

    pip install torch safetensors && python to_safetensors.py resnet18.pth resnet18.safetensors"""
import re
import sys

import torch
from safetensors.torch import save_file

state = torch.load(sys.argv[1], map_location="cpu", weights_only=True)
state = state.get("state_dict", state.get("model", state))
save_file({re.sub(r"^((module|_orig_mod)\.)+", "", name): value.contiguous().clone()
           for name, value in state.items()}, sys.argv[2])
