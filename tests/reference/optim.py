#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/optim.inc: what PyTorch 2.13 gives in double for the layers, losses, optimizers
and schedules, on numbers that the tests make by the same formula (test::number)."""

import pathlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
MASK = 2**64 - 1


def number(seed, i):
    x = ((seed + 1) * 0x9E3779B97F4A7C15 + i * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    x ^= x >> 31
    return (x >> 40) / (1 << 24) * 8 - 4


def numbers(sizes, seed=0):
    n = torch.Size(sizes).numel()
    return torch.tensor([number(seed, i) for i in range(n)]).reshape(sizes)


lines = []


def put(name, values):
    flat = torch.as_tensor(values).reshape(-1).tolist()
    body = ", ".join(f"{v:.9g}" for v in flat)
    lines.append(f"inline const std::vector<double> {name}{{{body}}};")


def loss_values(name, f, x):
    """The loss of each element, the mean, the sum and the gradient of the mean."""
    x = x.clone().requires_grad_()
    put(name + "_none", f(x, "none").detach())
    mean = f(x, "mean")
    mean.backward()
    put(name + "_mean_sum", [mean.item(), f(x, "sum").item()])
    put(name + "_grad", x.grad)


def losses():
    x, y = numbers((7, 5)), numbers((7, 5), 1)
    p, q = torch.sigmoid(x), torch.sigmoid(y)
    target = torch.tensor([(i * 7 + 3) % 5 for i in range(7)])
    some = torch.where(torch.arange(7) % 3 == 1, -100, target)
    weight = torch.tensor([0.5, 1.0, 2.0, 3.0, 0.25])
    loss_values("cross_entropy", lambda v, r: F.cross_entropy(v, target, reduction=r), x)
    loss_values("cross_entropy_some", lambda v, r: F.cross_entropy(v, some, reduction=r), x)
    loss_values("cross_entropy_smooth",
                lambda v, r: F.cross_entropy(v, some, reduction=r, label_smoothing=0.1), x)
    loss_values("cross_entropy_weighted",
                lambda v, r: F.cross_entropy(v, some, weight, reduction=r), x)
    loss_values("cross_entropy_weighted_smooth",
                lambda v, r: F.cross_entropy(v, some, weight, reduction=r, label_smoothing=0.1), x)
    soft_target = torch.softmax(y, 1)
    loss_values("cross_entropy_soft", lambda v, r: F.cross_entropy(v, soft_target, reduction=r), x)
    loss_values("cross_entropy_soft_smooth",
                lambda v, r: F.cross_entropy(v, soft_target, weight, reduction=r, label_smoothing=0.1), x)
    deep, places = numbers((3, 5, 4), 2), torch.arange(12).reshape(3, 4)
    each = torch.where(places % 4 == 1, -100, (places * 7 + 3) % 5)
    loss_values("cross_entropy_deep", lambda v, r: F.cross_entropy(v, each, reduction=r), deep)
    loss_values("cross_entropy_deep_all",
                lambda v, r: F.cross_entropy(v, each, weight, reduction=r, label_smoothing=0.1), deep)
    loss_values("cross_entropy_deep_soft",
                lambda v, r: F.cross_entropy(v, torch.softmax(numbers((3, 5, 4), 3), 1), weight,
                                             reduction=r), deep)
    loss_values("cross_entropy_single",
                lambda v, r: F.cross_entropy(v, torch.tensor(2), reduction=r), x[0])
    loss_values("nll_loss", lambda v, r: F.nll_loss(v, some, reduction=r), x)
    loss_values("l1_loss", lambda v, r: F.l1_loss(v, y, reduction=r), x)
    loss_values("mse_loss", lambda v, r: F.mse_loss(v, y, reduction=r), x)
    loss_values("huber_loss", lambda v, r: F.huber_loss(v, y, reduction=r, delta=1.5), x)
    loss_values("smooth_l1_loss", lambda v, r: F.smooth_l1_loss(v, y, reduction=r, beta=2.5), x)
    loss_values("bce", lambda v, r: F.binary_cross_entropy(v, q, reduction=r), p)
    loss_values("bce_logits",
                lambda v, r: F.binary_cross_entropy_with_logits(v, q, reduction=r), x)
    loss_values("bce_weighted",
                lambda v, r: F.binary_cross_entropy_with_logits(
                    v, q, reduction=r, pos_weight=weight), x)
    soft = torch.softmax(y, 1)
    logs = torch.log_softmax(x, 1)
    loss_values("kl_div", lambda v, r: F.kl_div(v, soft, reduction=r), logs)
    loss_values("kl_div_log", lambda v, r: F.kl_div(v, soft.log(), reduction=r, log_target=True), logs)
    put("kl_div_batchmean", F.kl_div(logs, soft, reduction="batchmean"))


def weighted_sum(y):
    flat = y.reshape(-1)
    return (flat * (torch.arange(flat.numel()) * 0.375 - 1.0625)).sum()


def layers():
    x = numbers((3, 7)).requires_grad_()
    w = numbers((7,), 1).requires_grad_()
    b = numbers((7,), 2).requires_grad_()
    for name, f, parameters in [
        ("layer_norm", lambda: F.layer_norm(x, (7,), w, b), [x, w, b]),
        ("rms_norm", lambda: F.rms_norm(x, (7,), w, torch.finfo(torch.float32).eps), [x, w]),
    ]:
        y = f()
        put(name, y.detach())
        for k, g in zip("xwb", torch.autograd.grad(weighted_sum(y), parameters)):
            put(f"{name}_grad_{k}", g)
    layer = torch.nn.BatchNorm1d(4)
    with torch.no_grad():
        layer.weight.copy_(numbers((4,), 1))
        layer.bias.copy_(numbers((4,), 2))
    layer(numbers((6, 4), 3))
    v = numbers((5, 4), 4).requires_grad_()
    y = layer(v)
    weighted_sum(y).backward()
    put("batch_norm", y.detach())
    put("batch_norm_grad_x", v.grad)
    put("batch_norm_grad_w", layer.weight.grad)
    put("batch_norm_grad_b", layer.bias.grad)
    put("batch_norm_running_mean", layer.running_mean)
    put("batch_norm_running_var", layer.running_var)
    layer.eval()
    put("batch_norm_eval", layer(numbers((5, 4), 5)).detach())


def optimizers():
    o = torch.optim
    x = numbers((5, 7), 3)
    for name, make in {
        "sgd": lambda p: o.SGD(p, 0.05, momentum=0.8, dampening=0.3, weight_decay=0.1),
        "sgd_plain": lambda p: o.SGD(p, 0.05, dampening=0.3),
        "sgd_nesterov": lambda p: o.SGD(p, 0.05, momentum=0.8, weight_decay=0.1, nesterov=True),
        "adam": lambda p: o.Adam(p, 0.05, betas=(0.8, 0.99), weight_decay=0.1),
        "adamw": lambda p: o.AdamW(p, 0.05, betas=(0.8, 0.99), weight_decay=0.1),
        "adam_amsgrad": lambda p: o.Adam(p, 0.5, betas=(0.8, 0.5), weight_decay=0.1, amsgrad=True),
        "adamw_amsgrad": lambda p: o.AdamW(p, 0.5, betas=(0.8, 0.5), weight_decay=0.1, amsgrad=True),
        "radam": lambda p: o.RAdam(p, 0.05, weight_decay=0.1),
        "radam_decoupled": lambda p: o.RAdam(
            p, 0.05, betas=(0.8, 0.9), weight_decay=0.1, decoupled_weight_decay=True),
        "rmsprop": lambda p: o.RMSprop(p, 0.02, alpha=0.9, weight_decay=0.1),
        "rmsprop_momentum": lambda p: o.RMSprop(p, 0.02, alpha=0.9, momentum=0.5),
        "rmsprop_centered": lambda p: o.RMSprop(p, 0.02, alpha=0.9, momentum=0.5, centered=True),
        "adagrad": lambda p: o.Adagrad(
            p, 0.1, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.2),
    }.items():
        w, b = numbers((5, 7), 1).requires_grad_(), numbers((7,), 2).requires_grad_()
        optimizer = make([w, b])
        for _ in range(10):
            optimizer.zero_grad()
            (((w - x) ** 2).sum() * 0.5 + (b * b).sum()).backward()
            optimizer.step()
        put(name, torch.cat([w.detach().reshape(-1), b.detach()]))


def run(optimizer, loss, parameters):
    for _ in range(10):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return torch.cat([p.detach().reshape(-1) for p in parameters])


def optimizers_by_name():
    """Those that programs include by name."""
    o = torch.optim
    x = numbers((5, 7), 3)
    for name, make in {
        "nadam": lambda p: o.NAdam(p, 0.05, weight_decay=0.1),
        "nadam_decoupled": lambda p: o.NAdam(
            p, 0.05, betas=(0.8, 0.99), weight_decay=0.1, momentum_decay=0.5,
            decoupled_weight_decay=True),
        "adamax": lambda p: o.Adamax(p, 0.05, betas=(0.8, 0.9), weight_decay=0.1),
        "adadelta": lambda p: o.Adadelta(p, weight_decay=0.1),
        "adadelta_rho": lambda p: o.Adadelta(p, 0.5, rho=0.6, eps=1e-2),
        "asgd": lambda p: o.ASGD(p, 0.05, lambd=0.1, t0=4, weight_decay=0.1),
        "rprop": lambda p: o.Rprop(p, 0.5),
        "rprop_bounded": lambda p: o.Rprop(p, 0.1, etas=(0.3, 2.5), step_sizes=(0.01, 0.8)),
        "adafactor": lambda p: o.Adafactor(p, 0.5, eps=(2.0**-23, 1e-3), weight_decay=0.1),
        "adafactor_bounded": lambda p: o.Adafactor(
            p, 0.3, beta2_decay=-0.5, eps=(2.5, 0.9), d=1.5),
    }.items():
        w, b = numbers((5, 7), 1).requires_grad_(), numbers((7,), 2).requires_grad_()
        put(name, run(make([w, b]), lambda: ((w - x) ** 2).sum() * 0.5 + (b * b).sum(), [w, b]))


def matrices():
    """Muon without its rounding to bfloat16, and Adafactor of three axes."""
    rounds = torch.Tensor.bfloat16
    torch.Tensor.bfloat16 = torch.Tensor.clone
    for name, sizes, make in [
        ("muon", [(5, 7), (7, 4)], lambda p: torch.optim.Muon(p, 0.05)),
        ("muon_plain", [(5, 7), (7, 4)], lambda p: torch.optim.Muon(
            p, 0.02, momentum=0.8, nesterov=False, weight_decay=0.5,
            adjust_lr_fn="match_rms_adamw")),
        ("adafactor_deep", [(2, 5, 3), (4,)], lambda p: torch.optim.Adafactor(p, 0.2, eps=(2.0**-23, 1e-3))),
    ]:
        p = [numbers(s, i + 1).requires_grad_() for i, s in enumerate(sizes)]
        x = numbers(sizes[0], 3)
        put(name, run(make(p), lambda: ((p[0] - x) ** 2).sum() * 0.5 + (p[1] * p[1]).sum(), p))
    torch.Tensor.bfloat16 = rounds


def lbfgs():
    """Rosenbrock's function of pairs, and how often it was evaluated."""
    for name, steps, options in [
        ("lbfgs", 3, {"lr": 0.01}),
        ("lbfgs_wolfe", 2, {"max_iter": 15, "history_size": 4, "line_search_fn": "strong_wolfe"}),
        ("lbfgs_few", 4, {"max_iter": 6, "max_eval": 5, "history_size": 2, "line_search_fn": "strong_wolfe"}),
    ]:
        w, b = numbers((2, 3), 1).requires_grad_(), numbers((4,), 2).requires_grad_()
        optimizer = torch.optim.LBFGS([w, b], **options)
        evaluations = [0]

        def closure():
            optimizer.zero_grad()
            x = torch.cat([w.reshape(-1), b]) / 4
            loss = (100 * (x[1::2] - x[::2] ** 2) ** 2 + (1 - x[::2]) ** 2).sum()
            loss.backward()
            evaluations[0] += 1
            return loss

        losses = [optimizer.step(closure).item() for _ in range(steps)]
        put(name, torch.cat([w.detach().reshape(-1), b.detach(), torch.tensor(losses + evaluations)]))


def lion():
    """Chen et al. (2023), program 1; PyTorch has none."""
    rate, beta1, beta2, decay = 0.03, 0.8, 0.95, 0.1
    x = numbers((5, 7), 3).reshape(-1)
    p = torch.cat([numbers((5, 7), 1).reshape(-1), numbers((7,), 2)])
    mean = torch.zeros_like(p)
    for _ in range(10):
        g = torch.cat([p[:35] - x, 2 * p[35:]])
        change = torch.sign(beta1 * mean + (1 - beta1) * g) + decay * p
        mean = beta2 * mean + (1 - beta2) * g
        p = p - rate * change
    put("lion", p)


def clipping():
    for name, most in [("clip_norm_low", 2.5), ("clip_norm_high", 1e6)]:
        w, b = numbers((5, 7), 1).requires_grad_(), numbers((7,), 2).requires_grad_()
        (((w - numbers((5, 7), 3)) ** 2).sum() * 0.5 + (b * b).sum()).backward()
        total = torch.nn.utils.clip_grad_norm_([w, b], most)
        put(name, torch.cat([total.reshape(1), w.grad.reshape(-1), b.grad]))


def rates(make, count, momentum=False, metric=None, epoch=None):
    p = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([p], 0.1, momentum=0.9)
    schedules = make(optimizer)
    if not isinstance(schedules, list):
        schedules = [schedules]
    group = optimizer.param_groups[0]
    seen = [group["momentum" if momentum else "lr"]]
    for i in range(count):
        optimizer.step()
        for s in schedules:
            s.step(metric(i)) if metric else s.step(epoch(i)) if epoch else s.step()
        seen.append(group["momentum" if momentum else "lr"])
    return seen


def schedules():
    s = torch.optim.lr_scheduler
    one_cycle = lambda **k: lambda o: s.OneCycleLR(o, 0.5, total_steps=12, **k)
    put("lambda_lr", rates(lambda o: s.LambdaLR(o, lambda t: 1 / (1 + t)), 5))
    put("step_lr", rates(lambda o: s.StepLR(o, 3, 0.5), 10))
    put("multi_step_lr", rates(lambda o: s.MultiStepLR(o, [2, 5, 5], 0.5), 8))
    put("exponential_lr", rates(lambda o: s.ExponentialLR(o, 0.8), 6))
    put("cosine_lr", rates(lambda o: s.CosineAnnealingLR(o, 6, 0.01), 20))
    put("linear_lr", rates(lambda o: s.LinearLR(o, 0.25, 0.9, 4), 7))
    put("warm_step_lr", rates(lambda o: [s.LinearLR(o, 0.25, 1.0, 4), s.StepLR(o, 3, 0.5)], 9))
    put("one_cycle_lr", rates(one_cycle(), 12))
    put("one_cycle_momentum", rates(one_cycle(), 12, momentum=True))
    put("one_cycle_linear_lr", rates(one_cycle(anneal_strategy="linear", pct_start=0.5), 11))
    metric = lambda i: [5, 4, 4.0001, 4, 4, 3.9999, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3][i]
    put("plateau_lr", rates(
        lambda o: s.ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=1), 16, metric=metric))
    put("constant_lr", rates(lambda o: s.ConstantLR(o, 0.25, 4), 8))
    put("polynomial_lr", rates(lambda o: s.PolynomialLR(o, 6, 1.7), 10))
    put("multiplicative_lr", rates(lambda o: s.MultiplicativeLR(o, lambda t: 1 - 0.1 / t), 6))
    restarts = lambda o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01)
    put("restarts_lr", rates(restarts, 24))
    put("restarts_fraction_lr", rates(restarts, 30, epoch=lambda i: 0.4 * i))
    cyclic = lambda **k: lambda o: s.CyclicLR(o, 0.05, 0.4, 3, **k)
    put("cyclic_lr", rates(cyclic(), 14))
    put("cyclic_momentum", rates(cyclic(), 14, momentum=True))
    put("cyclic_half_lr", rates(cyclic(step_size_down=5, mode="triangular2"), 20))
    put("cyclic_exp_lr", rates(cyclic(mode="exp_range", gamma=0.9), 20))
    put("sequential_lr", rates(lambda o: s.SequentialLR(
        o, [s.LinearLR(o, 0.25, 1.0, 4), s.LambdaLR(o, lambda t: 1 / (1 + t)),
            s.CosineAnnealingLR(o, 5, 0.01)], [4, 7]), 16))
    put("sequential_restarts_lr", rates(lambda o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.5, 10), s.CosineAnnealingWarmRestarts(o, 3, 2), s.CyclicLR(
            o, 0.05, 0.4, 2, cycle_momentum=False)], [2, 9]), 16))
    put("chained_lr", rates(lambda o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.5, 3), s.PolynomialLR(o, 9), s.ExponentialLR(o, 0.8)]), 8))
    root = lambda t: 1 - 0.1 / (t + 1)
    put("warm_cosine_lr", rates(lambda o: [s.LinearLR(o, 0.25, 1.0, 4), s.CosineAnnealingLR(o, 3, 0.01)], 9))
    put("warm_lambda_lr", rates(lambda o: [s.LinearLR(o, 0.25, 1.0, 4), s.LambdaLR(o, lambda t: 1 / (1 + t))], 5))
    put("warm_constant_lr", rates(lambda o: [s.LinearLR(o, 0.25, 1.0, 4), s.ConstantLR(o, 0.5, 3)], 6))
    put("sequential_multiplicative_lr", rates(lambda o: s.SequentialLR(
        o, [s.ExponentialLR(o, 0.8), s.MultiplicativeLR(o, root), s.PolynomialLR(o, 4)], [3, 5]), 8))
    put("sequential_multiplicative_first_lr", rates(lambda o: s.SequentialLR(
        o, [s.MultiplicativeLR(o, root), s.PolynomialLR(o, 4)], [3]), 7))
    put("sequential_one_cycle_lr", rates(lambda o: s.SequentialLR(
        o, [s.LinearLR(o, 0.5, 1.0, 2), s.OneCycleLR(o, 0.5, total_steps=8)], [3]), 9))
    put("one_cycle_first_lr", rates(lambda o: s.SequentialLR(
        o, [s.OneCycleLR(o, 0.5, total_steps=4), s.StepLR(o, 2, 0.5)], [3]), 9))
    put("chained_cosine_lr", rates(lambda o: s.ChainedScheduler(
        [s.LinearLR(o, 0.5, 1.0, 2), s.CosineAnnealingLR(o, 3, 0.01)]), 9))
    put("plateau_max_lr", rates(
        lambda o: s.ReduceLROnPlateau(o, mode="max", threshold_mode="abs", threshold=0.5, factor=0.1,
                                      patience=2, min_lr=0.002), 16, metric=lambda i: -metric(i)))


if __name__ == "__main__":
    for part in (losses, layers, optimizers, optimizers_by_name, matrices, lbfgs, lion, clipping, schedules):
        part()
    out = pathlib.Path(__file__).parent.parent / "data" / "optim.inc"
    out.write_text(
        "// SPDX-License-Identifier: Apache-2.0\n"
        "// Made by tests/reference/optim.py with PyTorch.\n"
        "// clang-format off\n"
        "#include <vector>\n\nnamespace reference {\n" + "\n".join(lines) +
        "\n}  // namespace reference\n")
