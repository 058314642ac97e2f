# SPDX-License-Identifier: Apache-2.0
"""The decoder's step in JAX: decoder_jax.py <threads> <small|char|seed> [memory]. jit of the whole
step; its state is donated. The first variant is weighed."""

import sys

import decoder_task as decoder
import task

THREADS = int(sys.argv[1])
jax = task.import_jax(THREADS)
import jax.numpy as jnp  # noqa: E402

COMPILED = task.watch_compiling(jax)


def attention_by_hand(q, k, v, is_causal):
    """(batch, sequence, heads, head size); neighbouring heads share a key head."""
    k, v = (jnp.repeat(x, q.shape[2] // x.shape[2], axis=2) for x in (k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    if is_causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)


def model_of(c, turned, attend):
    """Tokens to logits, with weights as (out, in) or turned, as in flax: (in, out)."""

    def linear(w, name, x):
        y = x @ (w[name + ".weight"] if turned else w[name + ".weight"].T)
        return y + w[name + ".bias"] if c.gpt else y

    def norm(w, name, x):
        if c.gpt:
            x = x - jnp.mean(x, axis=-1, keepdims=True)
        x = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + c.eps)
        x = x * w[name + ".weight"]
        return x + w[name + ".bias"] if c.gpt else x

    def feed_forward(w, at, x):
        up = linear(w, at + "up_proj", x)
        if c.gpt:
            return linear(w, at + "down_proj", jax.nn.gelu(up, approximate=False))
        return linear(w, at + "down_proj", jax.nn.silu(linear(w, at + "gate_proj", x)) * up)

    def forward(w, tokens):
        h = w["embed_tokens.weight"][tokens]
        if c.gpt:
            h = h + w["embed_positions.weight"][: tokens.shape[1]]
        for i in range(c.layers):
            at = f"layers.{i}."
            x = norm(w, at + "input_layernorm", h)
            q, k, v = (linear(w, f"{at}self_attn.{n}_proj", x)
                       .reshape(*tokens.shape, -1, c.head_size) for n in "qkv")
            y = attend(q, k, v, is_causal=c.causal).reshape(*tokens.shape, c.hidden)
            h = h + linear(w, at + "self_attn.o_proj", y)
            h = h + feed_forward(w, at + "mlp.", norm(w, at + "post_attention_layernorm", h))
        h = norm(w, "norm", h)
        return h @ w["embed_tokens.weight"].T if c.gpt else linear(w, "lm_head", h)

    return forward


def step_of(c, turned, attend):
    """(weights, means, squares, count, tokens, next tokens) to the same state and the loss."""
    forward = model_of(c, turned, attend)
    decay = decoder.LEARNING_RATE * decoder.DECAY[c.optimizer]

    def loss_of(w, tokens, following):
        logs = jax.nn.log_softmax(forward(w, tokens))
        return -jnp.take_along_axis(logs, following[..., None], axis=-1).mean()

    def train(w, m, v, count, tokens, following):
        loss, g = jax.value_and_grad(loss_of)(w, tokens, following)
        count = count + 1
        step_size = decoder.LEARNING_RATE / (1 - decoder.BETA1**count)
        root = jnp.sqrt(1 - decoder.BETA2**count)
        m = {n: decoder.BETA1 * m[n] + (1 - decoder.BETA1) * g[n] for n in w}
        v = {n: decoder.BETA2 * v[n] + (1 - decoder.BETA2) * g[n] * g[n] for n in w}
        w = {n: w[n] * (1 - decay) - m[n] / (jnp.sqrt(v[n]) / root + decoder.EPS) * step_size
             for n in w}
        return w, m, v, count, loss

    return jax.jit(train, donate_argnums=(0, 1, 2, 3))


def first_state(c, turned):
    """(weights, means, squares, count) before the first step."""

    def layout(name, w):
        return w.T if turned and w.ndim == 2 and not name.startswith("embed") else w

    w = {name: jnp.array(layout(name, w)) for name, w in decoder.weights(c).items()}
    zeros = lambda: {name: jnp.zeros_like(x) for name, x in w.items()}  # noqa: E731
    return w, zeros(), zeros(), jnp.zeros(())


def make(c, turned, attend):
    train = step_of(c, turned, attend)
    state = []

    def reset():
        state[:] = first_state(c, turned)

    def step(tokens, following):
        *state[:], loss = train(*state, tokens, following)
        return loss

    return reset, step


def main():
    loaded = task.resident("VmRSS")
    c = decoder.CONFIGS[sys.argv[2]]
    data = [(jnp.asarray(x, dtype=jnp.int32), jnp.asarray(y, dtype=jnp.int32))
            for x, y in decoder.text(c)]
    variants = {
        "(out, in)": lambda: make(c, False, attention_by_hand),
        "(in, out)": lambda: make(c, True, attention_by_hand),
        "dot_product_attention": lambda: make(c, False, jax.nn.dot_product_attention),
    }
    finish = lambda loss: float(jax.block_until_ready(loss))  # noqa: E731
    if sys.argv[3:] == ["memory"]:
        task.weigh("JAX jit", decoder.state_bytes(c), *next(iter(variants.values()))(), finish,
                   data[:3], loaded)
        return
    if sys.argv[2] == "seed":  # 4 GB each: the first alone
        variants = dict(list(variants.items())[:1])
    name, reset, step = task.fastest("decoder_jax", variants, data[:4], finish,
                                     1 if sys.argv[2] == "seed" else 4)
    task.serve("JAX jit", f"{jax.__version__} {name}", "the machine's", reset,
               lambda i: step(*data[i]), finish, decoder.BATCHES, decoder.WARM,
               compiled=COMPILED)


if __name__ == "__main__":
    main()
