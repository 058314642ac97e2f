# SPDX-License-Identifier: Apache-2.0
"""Attention by itself, forward and with all gradients, against PyTorch's
scaled_dot_product_attention, in turn."""

import math
import os
import sys
from typing import NamedTuple

from contest import Program

WAYS = ("forward", "with gradients")
ROUNDS = 5


class Size(NamedTuple):
    where: str
    batch: int
    heads: int
    kv_heads: int
    sequence: int
    width: int

    def words(self):
        return " ".join(map(str, self[1:]))

    def products(self):
        """Multiply-adds of one product of queries x keys x width, of all heads."""
        return self.batch * self.heads * self.sequence**2 * self.width

    def __str__(self):
        shared = "" if self.heads == self.kv_heads else f" in {self.kv_heads}"
        return f"{self.batch} x {self.heads}{shared} x {self.sequence} x {self.width}"


SIZES = (Size("decoder char", 12, 4, 4, 64, 32), Size("decoder small", 4, 8, 8, 128, 64),
         Size("", 2, 8, 8, 512, 64), Size("", 1, 8, 8, 1024, 64), Size("", 1, 8, 8, 2048, 64),
         Size("", 1, 8, 8, 4096, 64), Size("shared keys", 4, 8, 2, 128, 64),
         Size("shared keys", 1, 8, 2, 1024, 64))


def row(team, size, way, causal, threads):
    """One size: the least of some rounds of everyone, as it is and in autocast."""
    least, bytes_taken, peak = {}, {}, 0.0
    for _ in range(ROUNDS):
        for autocast in (0, 1):
            answers = {name: program.ask(f"run {way} {size.words()} {causal} {autocast}")
                       for name, program in team.items()}
            ours = answers["xla"]
            peak = max(peak, ours["peak"])
            for name, answer in answers.items():
                if not abs(answer["sum"] - ours["sum"]) <= (1e-4, 1e-2)[autocast] * ours["sum"]:
                    raise RuntimeError(f"attention of {size}: {name} has a sum of {answer['sum']}, "
                                       f"xla of {ours['sum']}")
                one = name, autocast
                least[one] = min(least.get(one, math.inf), answer["ns"])
                bytes_taken[one] = min(bytes_taken.get(one, math.inf), answer["bytes"])
    products = (2, 6)[way]  # without a mask, whatever is hidden or computed again
    ours, rounded = least["xla", 0], least["xla", 1]
    answer = {"where": size.where, "size": str(size), "way": WAYS[way], "causal": bool(causal),
              "threads": threads, "us": ours / 1e3,
              "share": 2 * products * size.products() / ours / peak,
              "megabytes": bytes_taken["xla", 0] / 1e6,
              "scores": 4e-6 * size.products() / size.width, "autocast_us": rounded / 1e3,
              "autocast_megabytes": bytes_taken["xla", 1] / 1e6, "autocast_gain": ours / rounded,
              "peer_us": None, "peer_megabytes": None, "ratio": None, "autocast_ratio": None}
    if "PyTorch" in team:
        peer = least["PyTorch", 0]
        answer |= {"peer_us": peer / 1e3, "peer_megabytes": bytes_taken["PyTorch", 0] / 1e6,
                   "ratio": peer / ours, "autocast_ratio": least["PyTorch", 1] / rounded}
    return answer


def measure(programs, peers, threads, only=""):
    """A row for each size, direction and mask; `only` is a part of a size's text."""
    n = str(threads)
    heap = os.path.join(programs, "libbench_heap.so")
    team = {"xla": Program([os.path.join(programs, "bench_attention"), n], threads,
                           {"LD_PRELOAD": heap})}
    if peers:
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers",
                              "attention_torch.py")
        mkl = os.path.join(programs, "libbench_mkl.so")
        team["PyTorch"] = Program([peers, script, n], threads,
                                  {"OMP_NUM_THREADS": n, "MKL_NUM_THREADS": n,
                                   "PYTHONUNBUFFERED": "1", "LD_PRELOAD": f"{heap} {mkl}"})
    rows = [row(team, size, way, causal, threads)
            for size in SIZES if only in str(size) for causal in (0, 1) for way in (0, 1)]
    for program in team.values():
        program.close()
    return rows


def show(rows):
    print("\nAttention: share of the peak by the products as they are without a mask, speed "
          "against PyTorch's, and the most memory without the arguments, in megabytes; in "
          "autocast: speed against our float32's, and against PyTorch's in autocast")
    for r in rows:
        peer = f"{r['ratio']:6.2f} x" if r["ratio"] else ""
        theirs = f" against {r['peer_megabytes']:.1f}" if r["ratio"] else ""
        print(f"  {r['where']:14}{r['size']:20}{'causal' if r['causal'] else '':8}{r['way']:16}"
              f"{r['threads']} thread(s){r['us']:11.1f} us{r['share']:6.0%}{peer}"
              f"{r['megabytes']:9.1f}{theirs}, scores {r['scores']:.1f}; "
              f"autocast {r['autocast_us']:.1f} us {r['autocast_gain']:.2f} x"
              f"{f', {mixed:.2f} x' if (mixed := r['autocast_ratio']) else ''}"
              f"{r['autocast_megabytes']:7.1f}")
    for what, target in (("ratio", "1.3"), ("autocast_gain", "0.95"), ("autocast_ratio", "1.3")):
        ratios = [r[what] for r in rows if r[what]]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"  {what}: geometric mean {mean:.2f}, least {min(ratios):.2f} (target {target} "
                  "everywhere)")


if __name__ == "__main__":
    # attention.py <folder of programs> <python with torch> [<threads> [<part of a size>]]
    show(measure(*sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 1,
                 only=sys.argv[4] if len(sys.argv) > 4 else ""))
