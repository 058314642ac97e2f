# SPDX-License-Identifier: Apache-2.0
"""The networks of reading.hpp in PyTorch."""

import torch
from torch import nn

import images_task as images
import task

VOCABULARY = 30522


class PNet(nn.Module):
    """The first network of MTCNN, of Zhang, Zhang, Li and Qiao (2016), on whole images."""

    def __init__(self):
        super().__init__()
        self.conv1, self.prelu1 = nn.Conv2d(3, 10, 3), nn.PReLU(10)
        self.conv2, self.prelu2 = nn.Conv2d(10, 16, 3), nn.PReLU(16)
        self.conv3, self.prelu3 = nn.Conv2d(16, 32, 3), nn.PReLU(32)
        self.pool = nn.MaxPool2d(2, ceil_mode=True)
        self.face, self.box = nn.Conv2d(32, 2, 1), nn.Conv2d(32, 4, 1)

    def forward(self, x):
        x = self.pool(self.prelu1(self.conv1(x)))
        shared = self.prelu3(self.conv3(self.prelu2(self.conv2(x))))
        return torch.cat((torch.softmax(self.face(shared), 1), self.box(shared)), 1)


class CrepeLayer(nn.Module):
    def __init__(self, inputs, outputs, **how):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(inputs, outputs, **how), nn.BatchNorm1d(outputs)
        self.pool = nn.MaxPool1d(2)

    def forward(self, x):
        return self.pool(self.norm(torch.relu(self.conv(x))))


class Crepe(nn.Module):
    """The pitch of 1024 samples of sound, of Kim, Salamon, Li and Bello (2018)."""

    def __init__(self, capacity):
        super().__init__()
        sizes = [n * capacity for n in (32, 4, 4, 4, 8, 16)]
        first = CrepeLayer(1, sizes[0], kernel_size=512, stride=4, padding=254)
        later = [CrepeLayer(a, b, kernel_size=64, padding="same")
                 for a, b in zip(sizes, sizes[1:])]
        self.layers = nn.Sequential(first, *later)
        self.classifier = nn.Linear(64 * capacity, 360)

    def forward(self, x):
        return torch.sigmoid(self.classifier(self.layers(x).flatten(1)))


class Hidden(nn.Module):
    """The shape of all-MiniLM-L6-v2: the last layer's output for each token."""

    def __init__(self):
        super().__init__()
        import transformers
        self.net = transformers.BertModel(transformers.BertConfig(
            hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536),
            add_pooling_layer=False)

    def forward(self, tokens):
        return self.net(input_ids=tokens).last_hidden_state


NETS = {"pnet": PNet, "crepe_tiny": lambda: Crepe(4), "crepe_full": lambda: Crepe(32),
        "minilm_10": Hidden, "minilm_46": Hidden, "minilm_128": Hidden}


def make_texts(batch, count, length, kinds=2):
    n = batch * count
    tokens = torch.from_numpy(task.hashed(1001, n * length).astype("int64") % VOCABULARY)
    labels = torch.from_numpy(task.hashed(1000, n).astype("int64") % kinds)
    return list(zip(tokens.view(count, batch, length), labels.view(count, batch)))


def make_batches(name, batch, count):
    if name.startswith("minilm"):
        return make_texts(batch, count, int(name.split("_")[1]))
    channels, size = (3, 224) if name == "pnet" else (1, 32)
    made = images.batches(images.Task(batch, channels, size, 2, count, 0))
    shape = (batch, 3, 224, 224) if name == "pnet" else (batch, 1, 1024)
    return [(torch.from_numpy(x).view(shape), torch.from_numpy(y)) for x, y in made]


def set_slopes(model):
    for module in model.modules():
        if isinstance(module, nn.PReLU):
            nn.init.constant_(module.weight, 0.25)
