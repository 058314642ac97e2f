# SPDX-License-Identifier: Apache-2.0
"""Writes bert_vit.txt: names and sizes of the states of Hugging Face's BERT and of timm's, torchvision's and Hugging Face's vision
transformers, and what small ones of them compute, in double, from weights that both sides make by one formula
(support/models.hpp); and four of these as files in 16 bits, for models/files.cpp.

    pip install torch==2.15.0 torchvision transformers==5.23.0 timm==1.0.31 safetensors && python bert_vit.py"""
import functools
import math
import pathlib
import shutil
import sys
import tempfile

sys.path.append(sys.path.pop(0))  # behind the packages: safetensors.py beside this is not the package of that name
import numpy
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import cases
import timm
import torchvision.models as models
import transformers
from transformers.core_model_loading import revert_weight_conversion

small = dict(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, max_position_embeddings=12,
             hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def numbers(sizes, seed):
    return cases.numbers(sizes, seed, torch.float64)


def fill(model):
    """The numbers of a parameter have its place as their seed; weights are as large as He's uniform ones."""
    for place, (name, p) in enumerate(model.named_parameters()):
        if p.dim() > 1:
            scaled = numbers(p.shape, place) * numpy.float32(math.sqrt(6 / p[0].numel()) / 4)
        else:
            scaled = numbers(p.shape, place) / 16 + (0 if name.endswith("bias") else 1)
        p.data = scaled.to(torch.float32).to(torch.float64)
    return model


def save(name, model, dtype):
    path = pathlib.Path(__file__).parent.parent / "data" / name
    save_file({key: value.to(dtype).contiguous() for key, value in model.state_dict().items()}, path, {"format": "pt"})


def files_names(model):
    return revert_weight_conversion(model, model.state_dict())


def states(name, model, of=lambda model: model.state_dict()):
    """Those that a file has: of parameters that are one, the first."""
    tied = getattr(model, "_tied_weights_keys", None) or {}
    for key, value in of(model).items():
        if key not in tied:
            cases.out.append(" ".join([f"states/{name}", key, *map(str, value.shape)]))


def train(name, model, forward, labels):
    model.train()
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9), []
    for step in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(), labels)
        loss.backward()
        if step == 0:
            cases.write(f"models/{name}/gradients", torch.stack([p.grad.norm() for p in model.parameters()]))
        optimizer.step()
        losses.append(loss)
    cases.write(f"models/{name}/losses", torch.stack(losses))


def bert():
    at = torch.arange(7)
    mask = at < torch.tensor([[7], [4], [1]])
    ids = torch.where(mask, torch.arange(21).reshape(3, 7) ** 2 % 47 + 3, 0)
    segments = (at >= 3).expand(3, 7).long()
    config = transformers.BertConfig(**small, num_labels=3)
    model = fill(transformers.BertForSequenceClassification(config)).eval()
    save("bert_bfloat16.safetensors", model, torch.bfloat16)
    cases.write("models/bert/hidden", model.bert(ids).last_hidden_state)
    cases.write("models/bert/pooled", model.bert(ids, mask.long()).pooler_output)
    inputs = ids, mask.long(), segments
    cases.write("models/bert/logits", model(*inputs).logits)
    train("bert", model, lambda: model(*inputs).logits, torch.tensor([2, 0, 1]))

    model = fill(transformers.BertForMaskedLM(config)).eval()
    cases.write("models/bert_masked_lm/logits", model(ids, mask.long()).logits[:, 0])
    train("bert_masked_lm", model, lambda: model(ids).logits.flatten(0, 1), ids.flatten())


def vit():
    images, labels = numbers((2, 3, 12, 12), 1000) / 4, torch.tensor([3, 7])
    model = timm.models.VisionTransformer(img_size=12, patch_size=4, embed_dim=16, depth=2, num_heads=2, mlp_ratio=1.5, num_classes=10)
    cases.write("models/vit/logits", fill(model).eval()(images))
    train("vit", model, lambda: model(images), labels)
    other = models.VisionTransformer(12, 4, 2, 2, 16, 24, num_classes=10)
    values = list(fill(model).state_dict().values())
    values.insert(3, values.pop(1))  # timm has the positions before the patches
    other.load_state_dict(dict(zip(other.state_dict(), values)))
    assert torch.allclose(other.eval()(images), model.eval()(images))
    save("vit_float16.safetensors", other, torch.float16)
    hugging_face_vit(model, images)


def hugging_face_vit(model, images):
    """timm's network by Hugging Face's names: those of its files, and those that its modules have."""
    config = transformers.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, image_size=12,
                                    patch_size=4, num_labels=10, layer_norm_eps=1e-6)
    other = transformers.ViTForImageClassification(config).eval()
    values = dict(model.state_dict())
    for name in [name for name in values if ".qkv." in name]:
        values |= {name.replace("qkv", part): third for part, third in zip("qkv", values.pop(name).chunk(3))}
    here = {".attention.q_proj": ".attn.q", ".attention.k_proj": ".attn.k", ".attention.v_proj": ".attn.v", ".attention.o_proj": ".attn.proj",
            "vit.layers": "blocks", "layernorm_before": "norm1", "layernorm_after": "norm2", "vit.layernorm": "norm", "classifier": "head",
            "vit.embeddings.cls_token": "cls_token", "vit.embeddings.position_embeddings": "pos_embed",
            "vit.embeddings.patch_embeddings.projection": "patch_embed.proj"}
    other.load_state_dict({name: values[functools.reduce(lambda n, part: n.replace(*part), here.items(), name)] for name in other.state_dict()})
    assert torch.allclose(other(images).logits, model.eval()(images))
    save("vit_modules_names.safetensors", other, torch.bfloat16)
    with tempfile.TemporaryDirectory() as folder:
        other.to(torch.bfloat16).save_pretrained(folder)
        shutil.copy(pathlib.Path(folder) / "model.safetensors", pathlib.Path(__file__).parent.parent / "data" / "vit_files_names.safetensors")


torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
bert()
vit()
with torch.device("meta"):
    states("bert_base", transformers.BertForSequenceClassification(transformers.BertConfig()))
    states("bert_base_masked_lm", transformers.BertForMaskedLM(transformers.BertConfig()))
    states("vit_base_patch16_224", timm.create_model("vit_base_patch16_224"))
    states("vit_b_16", models.vit_b_16())
    states("vit_base_hugging_face", transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000)), files_names)
cases.save(__file__, "bert_vit.txt")
