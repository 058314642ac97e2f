# SPDX-License-Identifier: Apache-2.0
"""Files that this library writes load into torchvision and transformers, every name and size of them, and the models answer there
what they answered here:

    XLA_TEST_FILES=<folder> build/test/gcc/tests/test_models_files "[.files]"
    pip install torch==2.15.0 torchvision transformers==5.23.0 safetensors && python files_load.py <folder>"""
import pathlib
import sys

sys.path.append(sys.path.pop(0))  # behind the packages: safetensors.py beside this is not the package of that name
import torch
import torchvision.models as models
import transformers
from safetensors.torch import load_file

folder = pathlib.Path(sys.argv[1])


def compare(name, model, logits_of=lambda answer: answer):
    answers = load_file(folder / name / "answers.safetensors")
    with torch.no_grad():
        logits = logits_of(model.eval()(answers["input"]))
    assert logits.shape == answers["logits"].shape, f"{name}: {logits.shape}"
    difference = (logits - answers["logits"]).abs().max() / logits.abs().max()
    print(f"{name}: logits up to {logits.abs().max():.3f}, differences {difference:.1e} of that")
    assert difference < 1e-5, name


def of_torchvision(name, model):
    model.load_state_dict(load_file(folder / name / "model.safetensors"), strict=True)
    compare(name, model)


def of_transformers(name, kind, config):
    config.save_pretrained(folder / name)
    model, info = kind.from_pretrained(folder / name, output_loading_info=True)
    left = {key: value for key, value in info.items() if value}
    assert not left, f"{name}: {left}"
    compare(name, model, lambda answer: answer.logits)


torch.set_num_threads(1)
of_torchvision("resnet18", models.resnet18(num_classes=10))
of_torchvision("vit_torchvision", models.VisionTransformer(12, 4, 2, 2, 16, 24, num_classes=10))
sizes = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24)
of_transformers("vit_hugging_face", transformers.ViTForImageClassification,
                transformers.ViTConfig(**sizes, image_size=12, patch_size=4, num_labels=10, layer_norm_eps=1e-6))
of_transformers("bert", transformers.BertForSequenceClassification,
                transformers.BertConfig(**sizes, vocab_size=50, max_position_embeddings=12, num_labels=3))
of_transformers("gpt2", transformers.GPT2LMHeadModel,
                transformers.GPT2Config(vocab_size=29, n_positions=12, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0))
