# SPDX-License-Identifier: Apache-2.0
"""Writes gpt2_llama.txt: names and sizes of what files of small models of Hugging Face's GPT-2 and Llama hold, and the logits that
these compute, in double, from weights that both sides make by one formula (support/models.hpp); and the config.json of each in
tests/data.

    pip install torch==2.15.0 transformers==5.23.0 && python gpt2_llama.py"""
import json
import math
import pathlib
import sys

import cases

sys.path.append(sys.path.pop(0))  # behind the packages: safetensors.py beside this is not the package of that name

import numpy
import torch
import transformers

sizes = dict(vocab_size=29, hidden_size=32, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4)
scaled = dict(rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=40)


def fill(name, model):
    """The numbers of a parameter have its place as their seed; weights are as large as He's uniform ones."""
    for place, (key, p) in enumerate(model.named_parameters()):
        if p.dim() > 1:
            values = cases.numbers(p.shape, place, torch.float64) * numpy.float32(math.sqrt(6 / p[0].numel()) / 4)
        else:
            values = cases.numbers(p.shape, place, torch.float64) / 16 + (0 if key.endswith("bias") else 1)
        p.data = values.to(torch.float32).to(torch.float64)
        cases.out.append(" ".join([f"states/{name}", key, *map(str, p.shape)]))
    model.eval()


def logits(name, model):
    fill(name, model)
    tokens = torch.arange(18).reshape(2, 9) ** 2 % 27 + 1
    whole = model(tokens).logits
    first = model(tokens[:, :4], use_cache=True)
    rest = model(tokens[:, 4:], past_key_values=first.past_key_values).logits
    assert torch.allclose(torch.cat((first.logits, rest), 1), whole)
    cases.write(f"models/{name}/logits", whole)
    folder = pathlib.Path(__file__).parents[1] / "data" / name
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model.config.to_diff_dict(), indent=1, sort_keys=True) + "\n")


torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
logits("gpt2", transformers.GPT2LMHeadModel(transformers.GPT2Config(
    vocab_size=29, n_positions=12, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)))
logits("llama", transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, num_key_value_heads=2, rope_parameters=scaled)))
logits("llama_tied", transformers.LlamaForCausalLM(transformers.LlamaConfig(
    **sizes, rms_norm_eps=1e-5, tie_word_embeddings=True, attention_bias=True, mlp_bias=True)))
cases.save(__file__, "gpt2_llama.txt")
