# SPDX-License-Identifier: Apache-2.0
"""The MLP step in JAX: mlp_jax.py <threads>. jit of the whole step, weights and velocities donated."""

import os
import sys

THREADS = int(sys.argv[1])
os.environ["JAX_PLATFORMS"] = "cpu"
flags = os.environ.get("XLA_FLAGS", "")
if THREADS == 1:
    flags += " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["XLA_FLAGS"] = flags

import jax  # noqa: E402  the flags come first
import jax.numpy as jnp  # noqa: E402

import task  # noqa: E402


def loss_of(ws, x, y):
    h = jax.nn.relu(x @ ws[0].T + ws[1])
    logits = h @ ws[2].T + ws[3]
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
    return -picked.mean()


def train(ws, vs, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(ws, x, y)
    vs = [task.MOMENTUM * v + g for v, g in zip(vs, gradients)]
    ws = [w - task.LEARNING_RATE * v for w, v in zip(ws, vs)]
    return ws, vs, loss


def main():
    step_fn = jax.jit(train, donate_argnums=(0, 1))
    data = [(jnp.asarray(x), jnp.asarray(y, dtype=jnp.int32)) for x, y in task.batches()]
    state = {}

    def reset():
        state["w"] = [jnp.array(w) for w in task.weights()]
        state["v"] = [jnp.zeros_like(w) for w in state["w"]]

    def step(i):
        state["w"], state["v"], loss = step_fn(state["w"], state["v"], *data[i])
        return loss

    def finish(loss):
        jax.block_until_ready((state["w"], state["v"], loss))
        return float(loss)

    task.serve("JAX jit", jax.__version__, "as the machine has", reset, step, finish)


if __name__ == "__main__":
    main()
