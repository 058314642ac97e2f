# SPDX-License-Identifier: Apache-2.0
"""Matrix products against PyTorch's, in turn: of float32, and with operands rounded to bfloat16
against its autocast, conversion included."""

import math
import os
import sys
from typing import NamedTuple

from compare import others_load
from contest import Program

WAYS = ("float32", "rounded")
AGREE = (1e-4, 2e-2)   # of float32; PyTorch's autocast rounds what it makes, too
TARGET = (0.98, 1.1)   # times PyTorch's speed, in every row
TARGET_MEAN = 1.25     # of the rounded rows, in the geometric mean
ROUNDS = 5


class Size(NamedTuple):
    """`count` products of m x k and k x n, where each matrix may be transposed in memory."""

    where: str
    m: int
    n: int
    k: int
    a_transposed: int = 0
    b_transposed: int = 0
    count: int = 1

    def words(self):
        return f"{self.count} {self.m} {self.n} {self.k} {self.a_transposed} {self.b_transposed}"

    def flops(self):
        return 2 * self.count * self.m * self.n * self.k

    def __str__(self):
        turned = "".join("-t"[t] for t in (self.a_transposed, self.b_transposed))
        count = "" if self.count == 1 else f"{self.count} of "
        return f"{count}{self.m} x {self.n} x {self.k} {turned}"


# A training step of the decoder `small`: forward, its inputs' and its weights' gradients; then what
# else the table of mixed precision's prototype has, and squares.
SIZES = (Size("q, k, v, o", 512, 512, 512, 0, 1), Size("gate, up", 512, 1376, 512, 0, 1),
         Size("down", 512, 512, 1376, 0, 1), Size("head", 512, 3200, 512, 0, 1),
         Size("q, k, v, o: dx", 512, 512, 512), Size("gate, up: dx", 512, 512, 1376),
         Size("down: dx", 512, 1376, 512), Size("head: dx", 512, 512, 3200),
         Size("q, k, v, o: dw", 512, 512, 512, 1), Size("gate, up: dw", 1376, 512, 512, 1),
         Size("down: dw", 512, 1376, 512, 1), Size("head: dw", 3200, 512, 512, 1),
         Size("128 rows", 128, 1024, 1024, 0, 1), Size("MLP", 64, 128, 784, 0, 1),
         Size("scores of heads", 128, 128, 64, 0, 1, 32),
         *(Size("square", n, n, n) for n in (256, 1024, 2048)))


def check(team, size, rounded):
    """Those who do not multiply alike cannot be compared. A number that signs and weights go into
    tells products that have the same size, as that of a matrix taken for its transpose."""
    words = f"check {rounded} {size.words()}"
    ours = team["xla"].ask(words)
    others = team["PyTorch"].ask(words)["made"] if "PyTorch" in team else {}
    scale = {"sum": ours["sum"],
             "mixed": ours["sum"] / math.sqrt(size.count * size.m * size.n)}
    for name, made in others.items():
        for what, of in scale.items():
            if not abs(made[what] - ours[what]) <= AGREE[rounded] * of:
                raise RuntimeError(f"product of {size}, {WAYS[rounded]}: {name} makes {made}, "
                                   f"xla {ours}")
    return ours["way"]


def row(team, size, rounded, threads, load):
    """One size in one precision: the least of some rounds of everyone."""
    by = check(team, size, rounded)
    ours, peak, others = math.inf, 0.0, {}
    for number in range(ROUNDS):
        for name in sorted(team, reverse=number % 2):
            answer = team[name].ask(f"run {rounded} {size.words()}")
            if name == "xla":
                ours, peak = min(ours, answer["ns"]), max(peak, answer["peak"])
                continue
            for way, ns in answer["ns"].items():
                others[way] = min(others.get(way, math.inf), ns)
    best = min(others, key=others.get, default=None)
    return {"where": size.where, "size": str(size), "way": WAYS[rounded],
            "by": by if rounded else "fma", "threads": threads,
            "others_load": load, "us": ours / 1e3, "gflops": size.flops() / ours,
            "share": size.flops() / ours / peak,
            "peers_us": {way: ns / 1e3 for way, ns in others.items()}, "peer": best,
            "ratio": others[best] / ours if best else None}


def measure(programs, peers, threads, only=""):
    """A row for each size and precision; `only` is a part of a size's text."""
    n = str(threads)
    team = {"xla": Program([os.path.join(programs, "bench_products"), n], threads)}
    if peers:
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers", "gemm_torch.py")
        team["PyTorch"] = Program([peers, script, n], threads,
                                  {"OMP_NUM_THREADS": n, "MKL_NUM_THREADS": n,
                                   "PYTHONUNBUFFERED": "1",
                                   "LD_PRELOAD": os.path.join(programs, "libbench_mkl.so")})
    load = others_load()
    rows = [row(team, size, rounded, threads, load) for rounded in (0, 1)
            for size in SIZES if only in f"{size.where} {size}"]
    for program in team.values():
        program.close()
    return rows


def verdict(rows, rounded):
    """Whether the rows of one precision reach their targets."""
    some = [r for r in rows if r["way"] == WAYS[rounded] and r["ratio"]]
    if not some:
        return
    mean = math.exp(sum(math.log(r["ratio"]) for r in some) / len(some))
    least = min(some, key=lambda r: r["ratio"])
    reached = sum(r["ratio"] >= TARGET[rounded] for r in some)
    said = [f"target {TARGET[rounded]} in every row: {reached} of {len(some)} reached it (least "
            f"{least['ratio']:.2f}: {least['where']}, {least['size']})",
            f"geometric mean {mean:.2f}"]
    if rounded:
        said.append(f"target {TARGET_MEAN}: {'reached' if mean >= TARGET_MEAN else 'missed'}")
    print(f"  {WAYS[rounded]}, {some[0]['threads']} thread(s): " + ", ".join(said))


def show(rows):
    print("\nMatrix products: GFLOP/s, as a share of float32's peak then, and speed against "
          "PyTorch's: float32 against the faster of MKL and oneDNN, operands rounded to bfloat16 "
          "against autocast's")
    for r in rows:
        peers = ", ".join(f"{way} {us:.1f} us" for way, us in r["peers_us"].items())
        print(f"  {r['where']:16}{r['size']:26}{r['way']:9}by {r['by']:5}{r['threads']} thread(s)"
              f"{r['us']:10.1f} us{r['gflops']:8.1f}{r['share']:7.0%}"
              + (f"{r['ratio']:7.2f} x  ({peers})" if r["ratio"] else ""))
    if rows and (load := rows[0]["others_load"]) > 0.05:
        print(f"  note: others used {load:.0%} of the machine: run it again alone")
    for rounded in (0, 1):
        verdict(rows, rounded)


if __name__ == "__main__":
    # products.py <folder of programs> <python with torch> [<threads> [<part of a size or name>]]
    show(measure(*sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 1,
                 only=sys.argv[4] if len(sys.argv) > 4 else ""))
