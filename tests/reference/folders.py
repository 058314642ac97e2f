#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what Hugging Face's save_pretrained leaves of small networks in addition to their weights, for ext/pretrained.cpp,
models/files.cpp and ext/tokenizer.cpp: tests/data/bert with config.json and the WordPiece of tests/data/vocab.txt as
tokenizer.json, tests/data/vit with config.json. It checks that tokenizer.json reads texts as tokens.inc says.

    pip install transformers==5.23.0 tokenizers==0.23.3 && python tests/reference/folders.py"""
import json
import pathlib

import transformers
from transformers import BertConfig, BertTokenizer, ViTConfig

DATA = pathlib.Path(__file__).parents[1] / "data"

BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, max_position_embeddings=12,
           hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=3).save_pretrained(DATA / "bert")
tokens = (DATA / "vocab.txt").read_text().splitlines()
tokenizer = BertTokenizer(vocab={t: i for i, t in enumerate(tokens)}, do_lower_case=True)
tokenizer.save_pretrained(DATA / "bert")
file = DATA / "bert" / "tokenizer.json"
file.write_text(json.dumps(json.loads(file.read_text()), ensure_ascii=True, separators=(",", ":")) + "\n")
ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, image_size=12, patch_size=4, num_labels=10,
          layer_norm_eps=1e-6).save_pretrained(DATA / "vit")
print(transformers.__version__)
