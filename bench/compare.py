# SPDX-License-Identifier: Apache-2.0
"""The contests: everyone does the same work in turn, round after round."""

import os
import sys
import time
from typing import NamedTuple

from contest import Program, spread, ticks

PAUSE = 0.05  # seconds; a spinning thread of the last contestant goes to sleep
STEADY = 0.9  # a round counts when the machine's peak around it is this share of the highest
PATIENCE = 3  # rounds held for each that counts, before the contest is given up
OURS = "xla compiled"
MODES = ("compiled", "traced", "fused", "eager")


class Peer(NamedTuple):
    """A script in peers/ and its arguments, where {} is the number of threads."""

    script: str
    arguments: tuple
    installed: bool = False  # as it is installed: without peers/mkl.cpp


def torch_and_jax(name, *arguments):
    """PyTorch eager and compiled, eager as it is installed, and JAX."""
    script = f"{name}_torch.py"
    return (Peer(script, ("eager", "{}", *arguments)), Peer(script, ("compile", "{}", *arguments)),
            Peer(script, ("eager", "{}", *arguments), installed=True),
            Peer(f"{name}_jax.py", ("{}", *arguments)))


def torch_alone(name, *ways):
    """PyTorch in several modes, on a network of images."""
    return tuple(Peer("images_torch.py", (way, "{}", name)) for way in ways)


class Contest(NamedTuple):
    """What is done, by whom, and what it costs."""

    title: str
    program: str          # ours: bench_<program> <mode> <threads>
    peers: tuple
    steps: int            # in a turn
    rounds: int           # at most
    flops: float          # multiplications and additions of a step's matrix products; 0: unasked
    unit: str             # of a step's time: us or ms
    what: str = "step"
    tokens: int = 0       # in a step
    agree: float = 1e-4   # relative difference of the last losses
    together: bool = True  # all are in memory at once


def decoder_flops(hidden, intermediate, vocabulary, kv, rows, sequence, layers=2, gates=3):
    """Of a training step: each product forward, for its input's and for its weights' gradient.
    `gates` is the number of the feed-forward layer's matrices."""
    matrices = layers * (2 * hidden * hidden + 2 * hidden * kv + gates * hidden * intermediate)
    tokens = rows * sequence
    attention = layers * 2 * tokens * sequence * hidden
    return 3 * 2 * (tokens * (matrices + vocabulary * hidden) + attention)


def conv_flops(size, inputs, outputs, kernel):
    """Of one image; `size` is that of what it makes."""
    return 2 * size**2 * inputs * outputs * kernel**2


def images_flops(batch, first, rest):
    """Of a training step: the first layer's images need no gradient."""
    return batch * (2 * first + 3 * rest)


CONVNET_STEM = conv_flops(26, 1, 32, 3)
CONVNET_REST = conv_flops(24, 32, 64, 3) + 2 * (9216 * 128 + 128 * 10)
RESNET_STEM = conv_flops(112, 3, 64, 7)
RESNET_REST = 4 * conv_flops(56, 64, 64, 3) + 2 * 512 * 1000 + sum(
    conv_flops(size, n // 2, n, 3) + conv_flops(size, n // 2, n, 1) + 3 * conv_flops(size, n, n, 3)
    for size, n in ((28, 128), (14, 256), (7, 512)))

CONTESTS = {
    "mlp": Contest(
        "MLP 784-128-10, batch 64, SGD with momentum", "mlp",
        torch_and_jax("mlp"),
        # Both layers forward, their weights' gradients, one input's gradient.
        400, 21, 2 * 64 * (2 * 784 * 128 + 3 * 128 * 10), "us", agree=1e-3),
    "decoder": Contest(
        "Decoder small, 4 x 128 tokens, AdamW", "decoder",
        torch_and_jax("decoder", "small"),
        5, 11, decoder_flops(512, 1376, 3200, 512, 4, 128), "ms", tokens=4 * 128),
    "decoder_autocast": Contest(
        "Decoder small in autocast with bfloat16, 4 x 128 tokens, AdamW", "decoder_autocast",
        (Peer("decoder_torch.py", ("eager+autocast", "{}", "small")),
         Peer("decoder_torch.py", ("compile+autocast", "{}", "small"))),
        5, 11, decoder_flops(512, 1376, 3200, 512, 4, 128), "ms", tokens=4 * 128, agree=1e-2),
    "decoder_char": Contest(
        "Decoder char, 12 x 64 tokens, AdamW", "decoder_char",
        torch_and_jax("decoder", "char"),
        20, 21, decoder_flops(128, 512, 65, 128, 12, 64, 4, 2), "ms", tokens=12 * 64),
    "decoder_seed": Contest(
        "Decoder of the seed, 214 million parameters, 2 x 512 tokens, Adam", "decoder_seed",
        torch_and_jax("decoder", "seed"),
        2, 2, decoder_flops(1024, 32768, 3200, 512, 2, 512), "ms", tokens=2 * 512,
        together=False),
    "convnet": Contest(
        "Convnet for MNIST, batch 64, SGD with momentum", "convnet",
        torch_alone("convnet", "eager", "compile"),
        20, 21, images_flops(64, CONVNET_STEM, CONVNET_REST), "ms", agree=1e-3),
    "resnet18": Contest(
        "ResNet-18, batch 8, SGD with momentum", "resnet18",
        torch_alone("resnet18", "eager", "compile"),
        3, 11, images_flops(8, RESNET_STEM, RESNET_REST), "ms", agree=1e-3),
    "resnet18_read": Contest(
        "ResNet-18 reads one image", "resnet18_read",
        torch_alone("resnet18_read", "eager", "frozen", "compile"),
        20, 21, RESNET_STEM + RESNET_REST, "ms", "image", agree=1e-4),
    "generate": Contest(
        "Text from the decoder small with rotary positions, cache of 256 tokens", "generate",
        (Peer("generate_torch.py", ("eager", "{}")), Peer("generate_torch.py", ("compile", "{}")),
         Peer("generate_torch.py", ("eager", "{}"), installed=True)),
        200, 21, 0, "ms", "token", tokens=1, agree=0),
}


def contestants(contest, programs, peers, threads, cache):
    """(command, environment) of everyone; the first is ours."""
    n = str(threads)
    for mode in MODES:
        yield [os.path.join(programs, "bench_" + contest.program), mode, n], {}
    if not peers:
        return
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
    environment = {
        "OMP_NUM_THREADS": n, "MKL_NUM_THREADS": n, "PYTHONUNBUFFERED": "1",
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(cache, "inductor"),
    }
    for peer in contest.peers:
        way = {"BENCH_INSTALLED": "1"} if peer.installed else \
            {"LD_PRELOAD": os.path.join(programs, "libbench_mkl.so")}
        yield [peers, os.path.join(here, peer.script), *(a.format(n) for a in peer.arguments)], \
            {**environment, **way}


def others_load(seconds=2):
    """The share of the machine that other programs use while we sleep."""
    before = ticks()
    time.sleep(seconds)
    after = ticks()
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def check_losses(losses, agree):
    """Those who do not train alike cannot be compared."""
    for name, loss in losses.items():
        if not abs(loss - losses[OURS]) <= agree * abs(losses[OURS]):
            raise RuntimeError(f"{name} ends at loss {loss}, {OURS} at {losses[OURS]}")


def start(commands, threads):
    team = {}
    for command, environment in commands:
        try:
            program = Program(command, threads, environment)
        except (RuntimeError, OSError) as error:
            print(f"  left out: {' '.join(command[-4:])}: {error}", file=sys.stderr)
            continue
        team[program.about["ready"]] = program
        print(f"  ready: {program.about['ready']}", file=sys.stderr)
    return team


class Score:
    """Nanoseconds per step of everyone in every round, the peaks, the last loss of each."""

    def __init__(self):
        self.times, self.losses, self.about = {}, {}, {}
        self.peaks, self.held, self.highest = [], 0, 0.0

    def play(self, team, peak, rounds, contest, every_round=False):
        """Plays until as many rounds as asked for saw the machine at its peak; the others count only
        with `every_round`."""
        def measured():
            time.sleep(PAUSE)
            return peak.ask("run")["gflops"]

        names, played = list(team), []
        steady = []
        while len(steady) < rounds and len(played) < PATIENCE * rounds:
            shift = len(played) % len(names)
            peaks, times = [measured()], {}
            for name in names[shift:] + names[:shift]:
                time.sleep(PAUSE)
                answer = team[name].ask(f"run {contest.steps}")
                times[name] = answer["ns"] / contest.steps
                self.losses[name] = answer["loss"]
            check_losses(self.losses, contest.agree)
            peaks.append(measured())
            self.highest = max(self.highest, *peaks)
            played.append((peaks, times))
            steady = [r for r in played if every_round or min(r[0]) >= STEADY * self.highest]
        self.held += len(played)
        for name, program in team.items():
            self.about[name] = program.about
            program.close()
        if len(steady) < rounds:
            raise RuntimeError(
                f"the machine's peak was 10 % below its highest ({self.highest:.0f} GFLOP/s) in "
                f"{len(played) - len(steady)} of {len(played)} rounds: run it where nothing else runs")
        for peaks, times in steady:
            self.peaks += peaks
            for name, ns in times.items():
                self.times.setdefault(name, []).append(ns)

    def rows(self):
        ours = self.times[OURS]
        return [{
            "name": name, "version": self.about[name]["version"], "isa": self.about[name]["isa"],
            "us": spread([t / 1e3 for t in times]),
            "ratio": spread([t / o for t, o in zip(times, ours)]),
            "least_us": min(times) / 1e3, "least_ratio": min(times) / min(ours),
            "loss": self.losses[name],
        } for name, times in self.times.items()]


def hold(name, programs, peers, threads, rounds, cache, every_round=False):
    """One contest with a number of threads, as a dictionary. With `every_round` rounds of a loaded
    machine count, too: then trust the least times alone."""
    contest = CONTESTS[name]
    rounds = min(rounds, contest.rounds)
    print(f"{name}, {threads} thread(s): starting the contestants", file=sys.stderr)
    everyone = list(contestants(contest, programs, peers, threads, cache))
    groups = [everyone] if contest.together else [[one] for one in everyone]
    peak = Program([os.path.join(programs, "bench_peak"), str(threads)], threads)
    score, others = Score(), 0.0
    for group in groups:
        team = start(group, threads)
        others = max(others, others_load())
        if team:
            score.play(team, peak, rounds, contest, every_round)
    peak.close()
    middle = spread(score.peaks)
    return {
        "contest": name, "threads": threads, "rounds": rounds, "steps": contest.steps,
        "tokens": contest.tokens, "rows": score.rows(),
        "peak_gflops": middle, "us_at_peak": contest.flops / middle[1] / 1e3,
        "rounds_disturbed": score.held - rounds * len(groups), "others_load": others,
    }


def show(result):
    contest = CONTESTS[result["contest"]]
    unit, what, tokens = contest.unit, contest.what, result["tokens"]
    scale = {"us": 1, "ms": 1e3}[unit]
    print(f"\n{contest.title}: {result['threads']} thread(s), "
          f"{result['rounds']} rounds of {result['steps']} {what}s"
          f"{'' if contest.together else ', one contestant after another'}")
    low, middle, high = result["peak_gflops"]
    print(f"  peak {middle:.0f} GFLOP/s ({low:.0f}-{high:.0f})"
          + (f"; a {what} at peak: {result['us_at_peak'] / scale:.1f} {unit}"
             if contest.flops else ""))
    if result["rounds_disturbed"]:
        print(f"  {result['rounds_disturbed']} more rounds do not count: around them the peak was "
              "10 % lower")
    if result["others_load"] > 0.05:
        print(f"  note: others used {result['others_load']:.0%} of the machine: run it again alone")
    digits = 3 if max(row["us"][1] for row in result["rows"]) < 100 * scale / 2 else 1
    print(f"  {'':28}{unit + ' per ' + what:>13}{'p10':>8}{'p90':>8}{'x ours':>8}{'p10':>7}{'p90':>7}"
          f"{'least':>9}{'x ours':>8}{'loss':>14}{'  tokens/s' if tokens else ''}  version, instructions")
    for row in result["rows"]:
        low, middle, high = (t / scale for t in row["us"])
        ratio = row["ratio"]
        speed = f"{tokens * 1e6 / row['us'][1]:10.0f}" if tokens else ""
        print(f"  {row['name']:28}{middle:13.{digits}f}{low:8.{digits}f}{high:8.{digits}f}{ratio[1]:8.2f}{ratio[0]:7.2f}"
              f"{ratio[2]:7.2f}{row['least_us'] / scale:9.{digits}f}{row['least_ratio']:8.2f}"
              f"{row['loss']:14.8g}{speed}  {row['version']}, {row['isa']}")
