# SPDX-License-Identifier: Apache-2.0
"""ResNets, ViT-B/16 and BERT-base in JAX: models_jax.py <resnet18|resnet50|vit|bert> <threads>; see
task.answer_ways.

Channels are innermost, weights (height, width, in, out): what XLA's convolutions on CPUs take. The
whole step is one jit; its state is donated.
"""

import sys

import images_task as images
import task

NAME, THREADS = sys.argv[1], int(sys.argv[2])
jax = task.import_jax(THREADS)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

STAGES, HEADS, WIDTH, LAYERS, PATCH = 4, 12, 768, 12, 16
BLOCKS = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
TOKENS, VOCABULARY, KINDS, DROPOUT = 128, 30522, 2, 0.1


def norm_names(prefix, n):
    return [(f"{prefix}.weight", (n,)), (f"{prefix}.bias", (n,))]


def linear_names(prefix, n, m):
    return [(f"{prefix}.weight", (m, n)), (f"{prefix}.bias", (m,))]


def block_kernels(n):
    """Outputs and kernel of a block's convolutions: the narrow one has the stride."""
    return ((n, 3), (n, 3)) if NAME == "resnet18" else ((n, 1), (n, 3), (4 * n, 1))


def resnet_names():
    """torchvision's parameters with their shapes, in its order."""
    names = [("conv1.weight", (64, 3, 7, 7)), *norm_names("bn1", 64)]
    inputs = 64
    for stage in range(STAGES):
        for block in range(BLOCKS[NAME][stage]):
            at, first = f"layer{stage + 1}.{block}", inputs
            for i, (n, kernel) in enumerate(block_kernels(64 << stage), 1):
                names += [(f"{at}.conv{i}.weight", (n, inputs, kernel, kernel)),
                          *norm_names(f"{at}.bn{i}", n)]
                inputs = n
            if first != inputs:
                names += [(f"{at}.downsample.0.weight", (inputs, first, 1, 1)),
                          *norm_names(f"{at}.downsample.1", inputs)]
    return names + linear_names("fc", inputs, 1000)


def bert_names():
    """transformers' parameters with their shapes, in its order."""
    at = "bert.embeddings"
    names = [(f"{at}.word_embeddings.weight", (VOCABULARY, WIDTH)),
             (f"{at}.position_embeddings.weight", (512, WIDTH)),
             (f"{at}.token_type_embeddings.weight", (2, WIDTH)),
             *norm_names(f"{at}.LayerNorm", WIDTH)]
    for layer in range(LAYERS):
        at = f"bert.encoder.layer.{layer}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            names += linear_names(f"{at}.attention.{name}", WIDTH, WIDTH)
        names += [*norm_names(f"{at}.attention.output.LayerNorm", WIDTH),
                  *linear_names(f"{at}.intermediate.dense", WIDTH, 4 * WIDTH),
                  *linear_names(f"{at}.output.dense", 4 * WIDTH, WIDTH),
                  *norm_names(f"{at}.output.LayerNorm", WIDTH)]
    return [*names, *linear_names("bert.pooler.dense", WIDTH, WIDTH),
            *linear_names("classifier", WIDTH, KINDS)]


def vit_names():
    """timm's parameters with their shapes, in its order."""
    names = [("cls_token", (1, 1, WIDTH)), ("pos_embed", (1, 197, WIDTH)),
             ("patch_embed.proj.weight", (WIDTH, 3, PATCH, PATCH)),
             ("patch_embed.proj.bias", (WIDTH,))]
    for layer in range(LAYERS):
        at = f"blocks.{layer}"
        names += [*norm_names(f"{at}.norm1", WIDTH),
                  *linear_names(f"{at}.attn.qkv", WIDTH, 3 * WIDTH),
                  *linear_names(f"{at}.attn.proj", WIDTH, WIDTH), *norm_names(f"{at}.norm2", WIDTH),
                  *linear_names(f"{at}.mlp.fc1", WIDTH, 4 * WIDTH),
                  *linear_names(f"{at}.mlp.fc2", 4 * WIDTH, WIDTH)]
    return names + norm_names("norm", WIDTH) + linear_names("head", WIDTH, 1000)


def weights():
    """By name; matrices and kernels with outputs innermost, tables as they are."""
    names = {"vit": vit_names, "bert": bert_names}.get(NAME, resnet_names)()
    made = {}
    for number, (name, shape) in enumerate(names):
        w = images.weight(number, name, shape)
        made[name] = jnp.asarray({2: lambda: w.T, 4: lambda: w.transpose(2, 3, 1, 0)}.get(
            len(shape) if "embeddings" not in name else 1, lambda: w)())
    return made


def conv(x, w, stride, padding):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), [(padding, padding)] * 2,
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))


def resnet(w, x, running, training, _):
    """Logits, and the running statistics after them."""
    new = {}

    def bn(x, name):
        mean, variance = running[name]
        if training:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            n = x.size // x.shape[-1]
            new[name] = (0.9 * running[name][0] + 0.1 * mean,
                         0.9 * running[name][1] + 0.1 * variance * n / (n - 1))
        scale = w[f"{name}.weight"] * jax.lax.rsqrt(variance + 1e-5)
        return x * scale + (w[f"{name}.bias"] - mean * scale)

    x = jax.nn.relu(bn(conv(x, w["conv1.weight"], 2, 3), "bn1"))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1),
                              ((0, 0), (1, 1), (1, 1), (0, 0)))
    for stage in range(STAGES):
        for block in range(BLOCKS[NAME][stage]):
            at, stride = f"layer{stage + 1}.{block}", 2 if stage and not block else 1
            kernels, y = block_kernels(64 << stage), x
            for i, (_, kernel) in enumerate(kernels, 1):
                strided = stride if i == len(kernels) - 1 else 1
                y = bn(conv(y, w[f"{at}.conv{i}.weight"], strided, kernel // 2), f"{at}.bn{i}")
                y = jax.nn.relu(y) if i < len(kernels) else y
            if f"{at}.downsample.0.weight" in w:
                x = bn(conv(x, w[f"{at}.downsample.0.weight"], stride, 0), f"{at}.downsample.1")
            x = jax.nn.relu(x + y)
    return x.mean((1, 2)) @ w["fc.weight"] + w["fc.bias"], new


def layers_of(w, eps):
    """Functions of x and a name."""
    def layer_norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + eps) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    return layer_norm, linear


def bert(w, x, running, training, key):
    """Logits; there are no running statistics. Dropout where training has a key for it."""
    layer_norm, linear = layers_of(w, 1e-12)
    count = iter(range(1000))

    def dropout(x):
        if not training or key is None:
            return x
        kept = jax.random.bernoulli(jax.random.fold_in(key, next(count)), 1 - DROPOUT, x.shape)
        return jnp.where(kept, x / (1 - DROPOUT), 0)

    at = "bert.embeddings"
    x = w[f"{at}.word_embeddings.weight"][x] \
        + w[f"{at}.position_embeddings.weight"][: x.shape[1]] \
        + w[f"{at}.token_type_embeddings.weight"][0]
    x = dropout(layer_norm(x, f"{at}.LayerNorm"))
    for layer in range(LAYERS):
        at = f"bert.encoder.layer.{layer}"
        q, k, v = (linear(x, f"{at}.attention.self.{n}").reshape(*x.shape[:2], HEADS, -1)
                   for n in ("query", "key", "value"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        y = jnp.einsum("bhqk,bkhd->bqhd", dropout(jax.nn.softmax(scores)), v).reshape(x.shape)
        y = dropout(linear(y, f"{at}.attention.output.dense"))
        x = layer_norm(x + y, f"{at}.attention.output.LayerNorm")
        y = jax.nn.gelu(linear(x, f"{at}.intermediate.dense"), approximate=False)
        x = layer_norm(x + dropout(linear(y, f"{at}.output.dense")), f"{at}.output.LayerNorm")
    pooled = dropout(jnp.tanh(linear(x[:, 0], "bert.pooler.dense")))
    return linear(pooled, "classifier"), {}


def vit(w, x, running, training, _):
    """Logits; there are no running statistics."""
    layer_norm, linear = layers_of(w, 1e-6)
    x = jax.lax.conv_general_dilated(x, w["patch_embed.proj.weight"], (PATCH, PATCH), "VALID",
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = x.reshape(x.shape[0], -1, WIDTH) + w["patch_embed.proj.bias"]
    first = jnp.broadcast_to(w["cls_token"], (x.shape[0], 1, WIDTH))
    x = jnp.concatenate([first, x], 1) + w["pos_embed"]
    for layer in range(LAYERS):
        at = f"blocks.{layer}"
        qkv = linear(layer_norm(x, f"{at}.norm1"), f"{at}.attn.qkv")
        q, k, v = jnp.moveaxis(qkv.reshape(*x.shape[:2], 3, HEADS, WIDTH // HEADS), 2, 0)
        x = x + linear(jax.nn.dot_product_attention(q, k, v).reshape(x.shape), f"{at}.attn.proj")
        y = jax.nn.gelu(linear(layer_norm(x, f"{at}.norm2"), f"{at}.mlp.fc1"), approximate=False)
        x = x + linear(y, f"{at}.mlp.fc2")
    return linear(layer_norm(x[:, 0], "norm"), "head"), {}


def make_batches(batch, count):
    if NAME == "bert":
        n = batch * count
        tokens = task.hashed(1001, n * TOKENS).astype(np.int64) % VOCABULARY
        kinds = (task.hashed(1000, n).astype(np.int64) % KINDS).reshape(count, batch)
        return [(jnp.asarray(x, dtype=jnp.int32), jnp.asarray(y, dtype=jnp.int32))
                for x, y in zip(tokens.reshape(count, batch, TOKENS), kinds)]
    made = images.batches(images.Task(batch, 3, 224, 1000, count, 0))
    return [(jnp.asarray(np.ascontiguousarray(x.transpose(0, 2, 3, 1))),
             jnp.asarray(y, dtype=jnp.int32)) for x, y in made]


class Model:
    """The step and the reading of a network, each compiled when it is first asked for."""

    def __init__(self):
        self.network = {"vit": vit, "bert": bert}.get(NAME, resnet)
        self.steps = {}

    def first_state(self):
        w = weights()
        running = {name.removesuffix(".weight"): (jnp.zeros_like(p), jnp.ones_like(p))
                   for name, p in w.items()
                   if NAME in BLOCKS and p.ndim == 1 and name.endswith(".weight")}
        return w, {name: jnp.zeros_like(p) for name, p in w.items()}, running

    def training(self, data, most=None):
        """A step; with the greatest norm of the gradients they are clipped."""
        def loss_of(w, running, x, y, key):
            logits, running = self.network(w, x, running, True, key)
            picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
            return -picked.mean(), running

        def train(w, v, running, x, y, number):
            key = None if most else jax.random.fold_in(jax.random.key(0), number)
            (loss, running), g = jax.value_and_grad(loss_of, has_aux=True)(w, running, x, y, key)
            if most:
                norm = jnp.sqrt(sum((p * p).sum() for p in g.values()))
                g = {name: p * jnp.minimum(1, most / (norm + 1e-6)) for name, p in g.items()}
            v = {name: images.MOMENTUM * v[name] + g[name] for name in w}
            w = {name: w[name] - images.LEARNING_RATE * v[name] for name in w}
            return w, v, running, loss

        jitted = jax.jit(train, donate_argnums=(0, 1, 2))
        state = list(self.first_state())

        def step(i):
            *state[:], loss = jitted(*state, *data[i % len(data)], i)
            return loss

        def reset():
            state[:] = self.first_state()

        step.reset = reset
        return step

    def reading(self, data):
        w, _, running = self.first_state()
        jitted = jax.jit(lambda w, running, x: self.network(w, x, running, False, None)[0])
        return lambda i: jitted(w, running, data[i % len(data)][0])

    def step(self, what, way):
        if what not in self.steps:
            batch = 8 if what == "training" else int(what[len("reading"):])
            data = make_batches(batch, 2 if batch >= 4 else 4 // batch)
            self.steps[what] = self.training(data) if what == "training" else self.reading(data)
        return self.steps[what]

    def check(self, training, _mixed):
        """Losses of three clipped steps on two samples; without dropout."""
        step = self.training(make_batches(2, 1), 1.0)
        return [float(step(i)) for i in range(3)]


def finish(made):
    return float(jnp.abs(made).astype(jnp.float32).sum()) if made.ndim else float(made)


def main():
    model, clock = Model(), task.clock_of(THREADS)
    task.say(ready="JAX", version=jax.__version__, isa="the machine's",
             ways={"training": ["jit"], "reading": ["jit"]})
    task.answer_ways(model, finish, clock)


if __name__ == "__main__":
    main()
