# SPDX-License-Identifier: Apache-2.0
"""Training by two processes with PyTorch's DistributedDataParallel and gloo, one thread each, on a
batch each: replicas_torch.py <eager|compile> <mlp|small|resnet18>. As in replicas.cpp.
"""

import datetime
import os
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

import decoder_task
import decoder_torch
import images_task
import images_torch
import mlp_task
import mlp_torch
import task

RANKS = 2


def make(name):
    """(model, its optimizer, function of logits and targets, batches, untimed steps)"""
    if name == "mlp":
        model = mlp_torch.Mlp()
        with torch.no_grad():
            for p, w in zip(model.parameters(), mlp_task.weights()):
                p.copy_(torch.from_numpy(w))
        optimizer = torch.optim.SGD(model.parameters(), lr=mlp_task.LEARNING_RATE,
                                    momentum=mlp_task.MOMENTUM, fused=True)
        return model, optimizer, F.cross_entropy, mlp_task.batches(), mlp_task.WARM
    if name == "small":
        c = decoder_task.CONFIGS[name]
        model, _ = decoder_torch.make_model(c)
        optimizer = torch.optim.AdamW(model.parameters(), lr=decoder_task.LEARNING_RATE, fused=True)
        return (model, optimizer, decoder_torch.cross_entropy, decoder_task.text(c),
                decoder_task.WARM)
    t = images_task.TASKS[name]
    model = images_torch.make_model(name, torch.channels_last)
    images_torch.set_weights(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=images_task.LEARNING_RATE,
                                momentum=images_task.MOMENTUM, fused=True)
    return model, optimizer, F.cross_entropy, images_task.batches(t), t.warm


class Training:
    def __init__(self, way, name, rank):
        self.model, self.optimizer, self.loss, data, self.warm = make(name)
        own = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in data[rank::RANKS]]
        if name == "resnet18":
            own = [(x.contiguous(memory_format=torch.channels_last), y) for x, y in own]
        self.data = own
        self.first = {k: v.clone() for k, v in self.model.state_dict().items()}
        self.replica = torch.nn.parallel.DistributedDataParallel(self.model)
        self.call = torch.compile(self.replica, dynamic=False) if way == "compile" else self.replica

    def train(self, first, last):
        for i in range(first, last):
            x, y = self.data[i % len(self.data)]
            self.optimizer.zero_grad()
            loss = self.loss(self.call(x), y)
            loss.backward()
            self.optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        return mean.item() / RANKS

    def run(self, n):
        self.model.load_state_dict(self.first)
        for state in self.optimizer.state.values():
            for value in state.values():
                if torch.is_tensor(value):
                    value.zero_()
        self.train(0, self.warm)
        start = time.perf_counter_ns()
        loss = self.train(self.warm, self.warm + n)
        return time.perf_counter_ns() - start, loss


def main():
    way, name = sys.argv[1:3]
    rank = int(os.environ.get("BENCH_RANK", 0))
    meeting = os.environ.get("BENCH_MEETING") or tempfile.mktemp()
    others = [subprocess.Popen([sys.executable] + sys.argv, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL,
                               env={**os.environ, "BENCH_RANK": str(r), "BENCH_MEETING": meeting})
              for r in range(1, RANKS) if rank == 0]
    torch.set_num_threads(1)
    torch.set_flush_denormal(False)
    # A rank waits for its turn as long as the contest takes.
    dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=RANKS,
                            timeout=datetime.timedelta(hours=2))
    training = Training(way, name, rank)
    training.run(1)
    steps = torch.zeros(1, dtype=torch.int64)

    def all_run(n):
        steps[0] = n
        dist.broadcast(steps, 0)
        return training.run(int(steps)) if int(steps) else None

    if rank:
        while all_run(0):
            pass
    else:
        task.say(ready=f"PyTorch DDP {way}", version=torch.__version__,
                 isa=torch.backends.cpu.get_cpu_capability())
        for line in sys.stdin:
            command, *arguments = line.split()
            if command != "run":
                break
            ns, loss = all_run(int(arguments[0]))
            task.say(ns=ns, loss=loss)
        all_run(0)
    # Without it gloo's threads now and then outlive what they use: "terminate called without an
    # active exception" (pytorch issue 190489).
    dist.destroy_process_group()
    for other in others:
        other.wait()


if __name__ == "__main__":
    main()
