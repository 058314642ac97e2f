# SPDX-License-Identifier: Apache-2.0
"""What a change of this library costs its author: user seconds until the one test of it has run again.

python3 bench/edit.py [folder]   copies the files that git knows to the folder (default build/edit), so that nothing
                                 here is touched; the first build takes minutes, later runs go on from it
python3 bench/tables.py --take build/edit/results.json
                                 makes bench/results/edit.json of it
"""

import os
import resource
import shutil
import subprocess
import sys

from contest import record_builds

# What is changed, the header of it in include/xla, its test, user seconds at most.
EDITS = [
    ("an op", "op/tanh.hpp", "op/tanh", 15),
    ("an op that another's rule uses", "op/relu.hpp", "op/relu", 15),
    ("a pass", "transform/share.hpp", "transform/passes", 25),
    ("a kernel of products", "kernel/gemm/micro_kernel.hpp", "kernel/gemm", 20),
]


def user_seconds():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def run_test(tree, test):
    """User seconds of building what the test needs and running it."""
    begin = user_seconds()
    command = ["cmake", f"-DMATCH=^gcc:{test}$", "-P", "cmake/test.cmake"]
    environment = dict(os.environ, CCACHE_DISABLE="1")
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode != 0 or "100% tests passed" not in done.stdout:
        raise RuntimeError(f"{test} did not pass:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    compiled = [line for line in done.stdout.split("\n") if "Building CXX object" in line]
    return user_seconds() - begin, len(compiled)


def copy_tree(root, tree):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0"):
        if not name or not os.path.isfile(os.path.join(root, name)):
            continue
        source, target = os.path.join(root, name), os.path.join(tree, name)
        if os.path.exists(target):
            with open(source, "rb") as a, open(target, "rb") as b:
                if a.read() == b.read():
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    tree = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(root, "build/edit"))
    copy_tree(root, tree)
    table = ["| changed | its test | user s | at most | compiled |", "|---|---|---|---|---|"]
    print("\n".join(table))
    for what, header, test, most in EDITS:
        run_test(tree, test)
        path = os.path.join(tree, "include/xla", header)
        with open(path, encoding="utf-8") as file:
            before = file.read()
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write("namespace xla::detail {\ninline constexpr int edited = 1;\n}\n")
            seconds, units = run_test(tree, test)
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(before)
        table.append(f"| {what}: `{header}` | `{test}` | {seconds:.1f} | {most} | {units} |")
        print(table[-1], flush=True)
    record_builds(tree, "edit", table)


if __name__ == "__main__":
    main()
