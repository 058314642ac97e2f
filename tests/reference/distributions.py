# SPDX-License-Identifier: Apache-2.0
"""Writes distributions.txt: what PyTorch 2.15's distributions give for the cases of tests/distributions/distributions.cpp.

    pip install torch==2.15.0 numpy && python distributions.py"""
import torch
from torch import distributions as D

import cases
from cases import case, numbers, save, write


def together(*parts):
    return torch.cat([p.reshape(-1) for p in parts])


loc, scale, value = numbers((3, 4)), numbers((4,), 1).abs() + 0.25, numbers((2, 3, 4), 2)
share = (numbers((3, 4), 3) + 4) / 8
place = torch.tensor([[2, 0, 3], [1, 1, 2]])


def single():
    def normal(l, s, v):
        d = D.Normal(l, s)
        return together(d.log_prob(v), d.entropy(), d.mean, d.mode, d.stddev, d.variance, d.cdf(v), d.icdf(share))

    case("normal", normal, loc, scale, value)

    def uniform(l, s):
        d = D.Uniform(l, l + s, validate_args=False)
        return together(d.log_prob(value), d.entropy(), d.mean, d.stddev, d.variance, d.cdf(value), d.icdf(share))

    case("uniform", uniform, loc, scale)

    def bernoulli(d, v):
        return together(d.log_prob(v), d.entropy(), d.mean, d.mode, d.stddev, d.variance, d.probs, d.logits)

    zero_one = torch.where(value > 0, 1.0, 0.0)
    case("bernoulli/probs", lambda p: bernoulli(D.Bernoulli(p), zero_one), share)
    case("bernoulli/logits", lambda l: bernoulli(D.Bernoulli(logits=l), zero_one), loc * 2)
    corners = torch.tensor([0.0, 1.0, 0.5])
    write("bernoulli/corners", bernoulli(D.Bernoulli(corners), torch.tensor([1.0, 0.0, 1.0])))

    def categorical(d):
        return together(d.log_prob(place), d.entropy(), d.probs, d.logits, d.mode.float(), d.mean, d.stddev, d.variance)

    case("categorical/probs", lambda p: categorical(D.Categorical(p)), share)
    case("categorical/logits", lambda l: categorical(D.Categorical(logits=l)), loc * 2)
    write("categorical/corners", categorical(D.Categorical(torch.tensor([0.0, 2.0, 0.0, 0.0]))))
    minus = torch.tensor([0.0, -torch.inf, 1.0])
    write("categorical/minus_infinity", D.Categorical(logits=minus).entropy())


def composed():
    def independent(l, s, v):
        d = D.Independent(D.Normal(l, s), 1)
        return together(d.log_prob(v), d.entropy(), d.mean, d.variance)

    case("independent", independent, loc, scale, value)

    def mixture(w, l, s, v):
        d = D.MixtureSameFamily(D.Categorical(w), D.Normal(l, s))
        return together(d.log_prob(v), d.mean, d.variance, d.stddev, d.cdf(v))

    case("mixture", mixture, share, loc, scale, numbers((5, 3), 4))

    def events(w, l, s, v):
        d = D.MixtureSameFamily(D.Categorical(logits=w), D.Independent(D.Normal(l, s), 1))
        return together(d.log_prob(v), d.mean, d.variance)

    case("mixture/events", events, numbers((3,), 5), loc, scale, numbers((2, 4), 4))


def divergences():
    l, s = numbers((3, 1), 6), numbers((3, 4), 7).abs() + 0.5
    case("kl/normal", lambda *x: D.kl_divergence(D.Normal(*x[:2]), D.Normal(*x[2:])), loc, scale, l, s)
    case("kl/independent", lambda *x: D.kl_divergence(
        D.Independent(D.Normal(*x[:2]), 1), D.Independent(D.Normal(*x[2:]), 1)), loc, scale, l, s)
    inner = D.Uniform(loc, loc + scale)
    write("kl/uniform", D.kl_divergence(inner, D.Uniform(loc - numbers((3, 4), 8) - 3, loc + scale + 1)))
    case("kl/uniform_normal", lambda a, w, m, t: D.kl_divergence(D.Uniform(a, a + w), D.Normal(m, t)), loc, scale, l, s)
    write("kl/normal_uniform", D.kl_divergence(D.Normal(loc, scale), inner))
    other = (numbers((3, 4), 9) + 4) / 8
    case("kl/bernoulli", lambda p, q: D.kl_divergence(D.Bernoulli(p), D.Bernoulli(q)), share, other)
    corners = torch.tensor([[0.0], [1.0], [0.5]])
    write("kl/bernoulli/corners", D.kl_divergence(D.Bernoulli(corners.expand(3, 3)), D.Bernoulli(corners.T.expand(3, 3))))
    case("kl/categorical", lambda p, q: D.kl_divergence(D.Categorical(p), D.Categorical(logits=q)), share, loc)
    p, q = torch.tensor([[0.0, 1, 1], [1, 1, 2]]), torch.tensor([[0.0, 1, 3], [0, 2, 1]])
    write("kl/categorical/corners", D.kl_divergence(D.Categorical(p), D.Categorical(q)))


single()
composed()
divergences()
cases.out[:] = [f"distributions/{line}" for line in cases.out]
save(__file__, "distributions.txt")
