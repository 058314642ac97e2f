# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers and loops over numbers in JAX: sequences_jax.py <threads>; see sequences.cpp."""

import sys

import sequences_task as sequences
import task

THREADS = int(sys.argv[1])
jax = task.import_jax(THREADS)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402


def lstm_gates(gates, c):
    i, f, g, o = jnp.split(gates, 4, 1)
    return jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g), jax.nn.sigmoid(o)


def lstm(weights, xs, unroll):
    in_, back, in_bias, back_bias = weights

    def step(state, x):
        h, c = state
        c, o = lstm_gates(x + h @ back.T, c)
        h = o * jnp.tanh(c)
        return (h, c), h

    none = jnp.zeros((xs.shape[1], back.shape[1]))
    return lax.scan(step, (none, none), xs @ in_.T + (in_bias + back_bias), unroll=unroll)[1]


def gru(weights, xs, unroll):
    in_, back, in_bias, back_bias = weights

    def step(h, x):
        xr, xz, xn = jnp.split(x, 3, 1)
        hr, hz, hn = jnp.split(h @ back.T + back_bias, 3, 1)
        n = jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn)
        h = n + jax.nn.sigmoid(xz + hz) * (h - n)
        return h, h

    none = jnp.zeros((xs.shape[1], back.shape[1]))
    return lax.scan(step, none, xs @ in_.T + in_bias, unroll=unroll)[1]


def norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift


def normed(weights, xs, unroll):
    in_, back, in_scale, in_shift, back_scale, back_shift, c_scale, c_shift = weights

    def step(state, x):
        h, c = state
        c, o = lstm_gates(x + norm(h @ back.T, back_scale, back_shift), c)
        c = norm(c, c_scale, c_shift)
        h = o * jnp.tanh(c)
        return (h, c), h

    none = jnp.zeros((xs.shape[1], back.shape[1]))
    inputs = norm(xs @ in_.T, in_scale, in_shift)
    return lax.scan(step, (none, none), inputs, unroll=unroll)[1]


def speaker(weights, xs, unroll):
    for i in range(0, len(weights), 4):
        xs = lstm(weights[i:i + 4], xs, unroll)
    return xs


LAYERS = {"lstm": lstm, "gru": gru, "normed": normed, "speaker": speaker}


def layer(name, way, batch, hidden, unroll):
    weights = [jnp.asarray(w) for w in sequences.weights(name, hidden)]
    xs = jnp.asarray(sequences.series(name, batch, hidden))
    read = jax.jit(lambda weights, xs: LAYERS[name](weights, xs, unroll))
    train = jax.jit(jax.grad(lambda weights, xs: jnp.mean(LAYERS[name](weights, xs, unroll)**2)))
    step = read if way == "reading" else train
    return lambda: jax.block_until_ready(step(weights, xs)), total


def total(tree):
    return sum(np.abs(np.asarray(leaf, np.float64)).sum() for leaf in jax.tree.leaves(tree))


def derivative(numbers, state, measured):
    sigma, rho, beta = numbers
    x, y, z = state
    return (sigma * (y - x) + sequences.COUPLING * (measured - x), x * (rho - z) - y,
            x * y - beta * z)


def moved(state, by, much):
    return tuple(s + b * much for s, b in zip(state, by))


def lorenz(every):
    jax.config.update("jax_enable_x64", True)
    h = sequences.TIME_STEP
    measured = jnp.asarray(sequences.drawn(1, (sequences.LORENZ_STEPS,), 10, np.float64))

    def loss(numbers, measured):
        def step(s, at):
            a = derivative(numbers, s, at)
            b = derivative(numbers, moved(s, a, h / 2), at)
            c = derivative(numbers, moved(s, b, h / 2), at)
            d = derivative(numbers, moved(s, c, h), at)
            once = moved(moved(s, a, h / 6), d, h / 6)
            return moved(moved(once, b, h / 3), c, h / 3), s[0]

        first = tuple(jnp.asarray(v, jnp.float64) for v in (1.0, 1.0, 20.0))
        if every:
            block = jax.checkpoint(lambda s, part: lax.scan(step, s, part))
            path = lax.scan(block, first, measured.reshape(-1, every))[1].reshape(-1)
        else:
            path = lax.scan(step, first, measured)[1]
        return jnp.mean((path - measured)**2)

    step = jax.jit(jax.grad(loss))
    numbers = tuple(jnp.asarray(v, jnp.float64) for v in (10.0, 28.0, 8 / 3))
    return lambda: jax.block_until_ready(step(numbers, measured)), total


def scalars():
    measured = jnp.asarray(sequences.drawn(1, (sequences.TURNS,), 1))

    def loss(numbers, measured):
        rate, memory = numbers

        def step(state, at):
            means, precisions = state
            next_means, next_precisions = [], []
            for i in range(sequences.NODES):
                difference = (at if i == 0 else means[i - 1]) - means[i]
                precision = memory * precisions[i] + 0.1 / (1 + difference * difference)
                next_means.append(means[i] + rate * difference * precision)
                next_precisions.append(precision)
            return (next_means, next_precisions), next_means[-1]

        half = [jnp.float32(0.5)] * sequences.NODES
        path = lax.scan(step, (half, half), measured)[1]
        return jnp.mean(path * path)

    step = jax.jit(jax.grad(loss))
    numbers = jnp.float32(0.5), jnp.float32(0.9)
    return lambda: jax.block_until_ready(step(numbers, measured)), total


def variants(name, way, batch, hidden):
    if name == "lorenz":
        return {"checkpoints": lambda: lorenz(sequences.EVERY), "plain": lambda: lorenz(0)}
    if name == "scalars":
        return {"scan": scalars}
    if name not in LAYERS:
        return {}
    return {f"scan, unroll {n}": lambda n=n: layer(name, way, batch, hidden, n) for n in (1, 4)}


def main():
    sequences.answer("JAX", jax.__version__, variants, task.clock_of(THREADS))


if __name__ == "__main__":
    main()
