# SPDX-License-Identifier: Apache-2.0
"""Steps of bench/backends.py in JAX: backends_jax.py <4|64|256|resnet18> <threads>. jit of the whole
step; its state is donated."""

import sys

import task

jax = task.import_jax(int(sys.argv[2]))
import jax.numpy as jnp  # noqa: E402

COMPILED = task.watch_compiling(jax)


def cells(n):
    """As in backends.cpp: each of n parameters of 4 elements is tanh(w * 0.5 + 0.25)."""
    step = jax.jit(lambda ws: [jnp.tanh(w * 0.5 + 0.25) for w in ws], donate_argnums=0)
    state = [jnp.zeros(4) for _ in range(n)]

    def one(_):
        state[:] = step(state)
        return state[-1]

    return lambda: None, one, lambda made: float(jax.block_until_ready(made)[3]), 1, 1


def resnet18():
    import images_task
    import models_jax
    t = images_task.TASKS["resnet18"]
    step = models_jax.Model().training(models_jax.make_batches(t.batch, t.batches))
    return step.reset, step, lambda loss: float(jax.block_until_ready(loss)), t.batches, t.warm


def main():
    what = sys.argv[1]
    reset, step, finish, batches, warm = resnet18() if what == "resnet18" else cells(int(what))
    task.serve("JAX jit", jax.__version__, "the machine's", reset, step, finish, batches, warm,
               compiled=COMPILED)


if __name__ == "__main__":
    main()
