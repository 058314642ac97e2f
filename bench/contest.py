# SPDX-License-Identifier: Apache-2.0
"""Programs that answer `run`, each in a process of its own that sleeps when it is not its turn."""

import datetime
import json
import os
import platform
import statistics
import subprocess

# One set of settings for all: freed memory is kept, as a tuned program would.
ENVIRONMENT = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(1 << 24),
}


class Program:
    """A child process and its line protocol; it may use the first `threads` processors."""

    def __init__(self, command, threads, environment=None):
        for library in (environment or {}).get("LD_PRELOAD", "").split():
            if not os.path.exists(library):  # the loader would only warn, and a peer be untuned
                raise FileNotFoundError(f"{library} is not there: build all of bench")
        cpus = sorted(os.sched_getaffinity(0))[:threads]
        self.command = command
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **ENVIRONMENT, **(environment or {})},
            preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        self.about = self.answer()

    def answer(self):
        """The next line that is an object of JSON; libraries print warnings in between."""
        for line in self.process.stdout:
            if line.startswith("{"):
                try:
                    return json.loads(line)
                except ValueError as error:
                    raise RuntimeError(f"{self.command[0]} answers {line.strip()}") from error
        raise RuntimeError(f"{self.command[0]} ended early")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def spread(samples):
    """10th percentile, median and 90th percentile."""
    ordered = sorted(samples)
    at = [ordered[round(q * (len(ordered) - 1))] for q in (0.1, 0.9)]
    return [at[0], statistics.median(ordered), at[1]]


def ticks():
    """Processor time of this machine so far, in ticks: (busy, all)."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, idle, iowait, irq, softirq, steal = map(
            int, stat.readline().split()[1:9])
    busy = user + nice + system + irq + softirq + steal
    return busy, busy + idle + iowait


def machine():
    model = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            first = info.read().split("\n\n")[0].split("\n")
        about = {key.strip(): value.strip() for key, _, value in (l.partition(":") for l in first)}
        model = about.get("model name", model)
        if "cpu family" in about:  # a virtual machine's name may tell less
            model += f" (family {about['cpu family']}, model {about['model']})"
    except OSError:
        pass
    return {"model": model, "processors": len(os.sched_getaffinity(0)),
            "system": f"{platform.system()} {platform.release()}",
            "date": datetime.date.today().isoformat()}


def record_builds(folder, part, table):
    """Writes results.json, for tables.py, of a script that measures g++'s builds by itself."""
    version = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True)
    with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as file:
        json.dump({"machine": machine(), "versions": [version.stdout.split("\n")[0]],
                   "command": f"python3 bench/{part}.py", "printed": {part: table}}, file, indent=1)
