#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/generate/: folders of a small GPT-2 and a small Llama as transformers saves them (bfloat16, the Llama in
several files), with the tokenizers of tests/data/bpe and what each writes: expected.txt has the numbers of a prompt's tokens, and
of the most probable ones that follow.

    pip install torch==2.15.0 transformers==5.23.0 sentencepiece==0.2.3 && python tests/reference/generate.py"""
import pathlib
import shutil
import sys

import cases

sys.path.append(sys.path.pop(0))  # behind the packages: safetensors.py beside this is not the package of that name

import sentencepiece
import torch
import transformers

DATA = pathlib.Path(__file__).parents[1] / "data"
PROMPT = "Hello world, the cat"
COUNT = 40


def fill(model):
    """Weights by cases.py's formula, as a file of bfloat16 has them."""
    for place, (key, p) in enumerate(model.named_parameters()):
        values = cases.numbers(p.shape, place + 30, torch.float64)
        scale = 0.9 * p.shape[-1] ** -0.5 if p.dim() > 1 else 1 / 16
        offset = 1 if p.dim() == 1 and not key.endswith("bias") else 0
        p.data = (values * scale + offset).to(torch.bfloat16).to(torch.float64)
    model.eval()


def write(name, model, encode, files, size):
    fill(model)
    folder = DATA / "generate" / name
    shutil.rmtree(folder, ignore_errors=True)
    tokens = encode(PROMPT)
    prompt = len(tokens)
    for _ in range(COUNT):
        best = model(torch.tensor([tokens])).logits[0, -1].topk(2)
        assert best.values[0] - best.values[1] > 1e-4, "rounding could decide"
        tokens.append(int(best.indices[0]))
    model.to(torch.bfloat16).save_pretrained(folder, max_shard_size=size)
    (folder / "generation_config.json").unlink(missing_ok=True)
    for file in files:
        shutil.copy(DATA / "bpe" / file[0], folder / file[1])
    (folder / "expected.txt").write_text("\n".join(" ".join(map(str, part)) for part in (tokens[:prompt], tokens[prompt:])) + "\n")


torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
gpt2 = transformers.GPT2Tokenizer(vocab=str(DATA / "bpe/vocab.json"), merges=str(DATA / "bpe/merges.txt"))
write("gpt2", transformers.GPT2LMHeadModel(transformers.GPT2Config(
    vocab_size=377, n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=376, eos_token_id=376)),
    lambda text: gpt2(text)["input_ids"], [("vocab.json", "vocab.json"), ("merges.txt", "merges.txt")], "1GB")
pieces = sentencepiece.SentencePieceProcessor(model_file=str(DATA / "bpe/sentencepiece.model"))
write("llama", transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=420, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    rms_norm_eps=1e-5, rope_parameters=dict(rope_type="default", rope_theta=10000.0), bos_token_id=1, eos_token_id=2)),
    lambda text: pieces.encode(text, add_bos=True), [("sentencepiece.model", "tokenizer.model")], "20KB")
