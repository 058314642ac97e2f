# SPDX-License-Identifier: Apache-2.0
"""The MLP step in JAX: mlp_jax.py <threads>. jit of the whole step; its state is donated."""

import sys

import mlp_task as mlp
import task

THREADS = int(sys.argv[1])
jax = task.import_jax(THREADS)
import jax.numpy as jnp  # noqa: E402

COMPILED = task.watch_compiling(jax)


def make(turned):
    """The jitted step, with weights as (out, in) or turned, as (in, out)."""

    def loss_of(ws, x, y):
        first, second = (ws[0], ws[2]) if turned else (ws[0].T, ws[2].T)
        logits = jax.nn.relu(x @ first + ws[1]) @ second + ws[3]
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
        return -picked.mean()

    def train(ws, vs, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(ws, x, y)
        vs = [mlp.MOMENTUM * v + g for v, g in zip(vs, gradients)]
        ws = [w - mlp.LEARNING_RATE * v for w, v in zip(ws, vs)]
        return ws, vs, loss

    jitted = jax.jit(train, donate_argnums=(0, 1))
    state = {}

    def reset():
        state["w"] = [jnp.array(w.T if turned else w) for w in mlp.weights()]
        state["v"] = [jnp.zeros_like(w) for w in state["w"]]

    def step(x, y):
        state["w"], state["v"], loss = jitted(state["w"], state["v"], x, y)
        return loss, state

    return reset, step


def main():
    data = [(jnp.asarray(x), jnp.asarray(y, dtype=jnp.int32)) for x, y in mlp.batches()]
    variants = {"(out, in)": lambda: make(False), "(in, out)": lambda: make(True)}
    finish = lambda result: float(jax.block_until_ready(result)[0])
    name, reset, step = task.fastest("mlp_jax", variants, data, finish)
    task.serve("JAX jit", f"{jax.__version__} {name}", "the machine's", reset,
               lambda i: step(*data[i]), finish, mlp.BATCHES, mlp.WARM,
               compiled=COMPILED)


if __name__ == "__main__":
    main()
