# SPDX-License-Identifier: Apache-2.0
"""Pages of figures from bench/results/*.json, so that each figure is in one place.

python3 bench/tables.py                   writes bench/results/README.md
python3 bench/tables.py --check           fails where that page, or the README's table, differs
python3 bench/tables.py --take results.json... [--file decoder]
                                          makes bench/results/decoder.json, or every file whose
                                          parts were run, of what run.py has recorded in one run
                                          or in several on one machine

A file has title, machine, versions, command, date, and blocks: paragraphs ({"text": ...}), tables
({"columns": [...], "rows": [[...]]}) and what a part printed ({"printed": [...]}, its lines). All are
recorded. targets.json has what is by hand: targets that are not reached, and reasons.
"""

import argparse
import glob
import json
import os
import re
import shutil
from typing import NamedTuple

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
PAGE = os.path.join(FOLDER, "README.md")
NEEDED = ("title", "order", "machine", "versions", "command", "date", "blocks")
# Which parts of run.py a file is made of.
FILES = {
    "decoder": ("decoder", "decoder_char", "decoder_autocast", "decoder_seed"),
    "mlp": ("mlp",),
    "generate": ("generate",),
    "images": ("convnet", "resnet18", "resnet18_read"),
    "models": ("models", "models_autocast"),
    "reading": ("reading",),
    "memory": ("memory",),
    "kernels": ("overhead", "specialise", "trips", "loops", "traced", "fused", "rows", "gemm",
                "products", "epilogue", "attention", "parity", "binary"),
    "build": ("build", "capture"),
    "depth": ("depth", "scanned"),
    "sizes": ("sizes",),
    "web": ("web",),
    "edit": ("edit",),
    "conv": ("conv",),
    "replicas": ("replicas",),
    "sequences": ("sequences",),
    "backends": ("backends",),
}
PLOTTED = ("decoder", "mlp", "resnet18")  # parts whose plot is on the page
# The packages of peers that a file's figures depend on, where not PyTorch and JAX alone.
PACKAGES = {"models": ("torch", "torchvision", "transformers", "timm"),
            "images": ("torch", "torchvision"),
            "reading": ("torch", "torchvision", "transformers", "timm", "onnxruntime", "openvino",
                        "ncnn")}
WHEN_ASKED = ("decoder_autocast", "decoder_seed", "models_autocast")
TARGETS = "targets"  # the file of reasons why targets are not reached
PORTS = "ports"  # the file that ports.py writes


def load():
    results = []
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.json"))):
        if os.path.basename(path) == f"{TARGETS}.json":
            continue
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        missing = [key for key in NEEDED if key not in result]
        if missing:
            raise SystemExit(f"{path} lacks {', '.join(missing)}")
        for block in result["blocks"]:
            for row in block.get("rows", []):
                if len(row) != len(block["columns"]):
                    raise SystemExit(f"{path}: {len(row)} cells below {len(block['columns'])} "
                                     f"columns: {row[0]}")
        results.append((os.path.basename(path), result))
    return sorted(results, key=lambda r: (r[1]["order"], r[0]))


def lines_of(result):
    """What a file's parts have printed."""
    for block in result["blocks"]:
        yield from block.get("printed", [])
        yield from block.get("text", "").split("\n")


def cells_of(result, table, row):
    """The cells of a row below a heading, or below a part's name."""
    below = False
    for text in lines_of(result):
        below = text == f"### {table}" or below and not text.startswith("### ")
        if below and text.startswith(f"| {row} |"):
            return [cell.strip() for cell in text.strip("|").split("|")]
    blocks = result["blocks"]
    for name, block in zip(blocks, blocks[1:]):
        if name.get("text") == f"`{table}`:":
            for cells in block.get("rows", []):
                if cells[0] == row:
                    return cells
    return None


def measured(reason, result):
    """What the file of a reason says of its target: lines that have a text, or cells of tables."""
    if "line" in reason:
        found = [" ".join(text.strip("| ").replace(" | ", ", ").split())
                 for text in lines_of(result) if reason["line"] in text]
        found = list(dict.fromkeys(found))
    else:
        rows = [cells_of(result, table, reason["row"]) for table in reason["tables"]]
        found = [", ".join(row[i] for i in reason["cells"]) for row in rows if row]
    if not found:
        raise SystemExit(f"bench/results/{TARGETS}.json: nothing in {reason['of']}.json is about "
                         f"{reason['target']}: was it reached, or is it measured no more?")
    return "; ".join(found).replace("**", "").replace("|", "/")


def missed(result):
    """Pairs of a heading and a line that says that a target is missed: by the word, or by the last
    two cells of a table of times and targets."""
    heading, has_targets = "", False
    for text in lines_of(result):
        cells = [cell.strip(" *") for cell in text.strip("|").split("|")]
        if text.startswith("### "):
            heading, has_targets = text[4:], False
        elif cells[-2:] == ["times", "target"]:
            has_targets = True
        elif not text.startswith("|"):
            has_targets = False
        below = has_targets and len(numbers("|".join(cells[-2:]))) == 2 and \
            float(cells[-2]) < float(cells[-1])
        if below or re.search(r"\bmissed\b", text):
            yield heading, text


def not_reached(results):
    """The table of targets that are not reached. A missed target without a reason is an error."""
    with open(os.path.join(FOLDER, f"{TARGETS}.json"), encoding="utf-8") as file:
        reasons = json.load(file)["reasons"]
    files = {name[:-5]: result for name, result in results}
    for name, result in files.items():
        for heading, text in missed(result):
            if not any(r["of"] == name and (
                    r["line"] in text if "line" in r else
                    heading in r["tables"] and text.startswith(f"| {r['row']} |")) for r in reasons):
                raise SystemExit(f"bench/results/{TARGETS}.json has no reason for what {name}.json "
                                 f"says: {heading} {text.strip()}")
    out = ["## What is not reached, and why", "",
           f"Targets and reasons are written by hand, in [{TARGETS}.json]({TARGETS}.json). What was measured is from "
           "the other files.", "",
           "| target | measured | what limits it |", "|---|---|---|"]
    return out + [line([r["target"], measured(r, files[r["of"]]), r["why"]]) for r in reasons] + [""]


def line(cells):
    return "|" + "".join(f" {cell} |" for cell in cells)


def page(results):
    out = ["# Figures", "",
           "`python3 bench/tables.py` makes this page of the files in this folder; do not edit it. "
           "[Benchmarks](../README.md) says how they are measured.", ""]
    for name, result in results:
        out += [f"## {result['title']}", "",
                f"[{name}]({name}), {result['date']}; {result['machine']}; {result['versions']}.", "",
                "```sh", result["command"], "```", ""]
        for block in result["blocks"]:
            if "text" in block:
                out += [block["text"], ""]
            elif "printed" in block:
                shown = summary(block["printed"])
                out += ["```text", *shown, "```", ""]
                if len(shown) < len(block["printed"]):
                    out += [f"All {len(block['printed'])} lines are in [{name}]({name}).", ""]
            else:
                rule = "|" + "---|" * len(block["columns"])
                out += [line(block["columns"]), rule, *map(line, block["rows"]), ""]
    out += not_reached(results)
    return "\n".join(out).rstrip("\n") + "\n"


LONG = 80  # lines that a part has printed, of which the page shows what they come to


def summary(printed):
    """All of it, or titles, means and targets where it is long."""
    if len(printed) <= LONG:
        return printed
    return [row for row in printed if re.search(r"^\S|\btargets?\b|\bmean\b", row)]


def numbers(text):
    """The numbers of a text, as they are written."""
    return re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w]|\.\d)", text.replace("**", ""))


def unknown(readme, results):
    """Numbers of the README's table that no file has, to as many digits as the README shows."""
    measured = readme.split("## Measured")[1].split("\n## ")[0]
    table = [row for row in measured.split("\n") if row.startswith("|")][2:]
    known = set()
    for _, result in results:
        known.update(float(n) for n in numbers(json.dumps(result["blocks"], ensure_ascii=False)))
    missing = []
    for row in table:
        for n in numbers("|".join(row.split("|")[2:])):
            step = 0.5 * 10 ** -(len(n.partition(".")[2]))
            if not any(abs(k - float(n)) <= step * 1.0001 for k in known):
                missing.append(f"{n} ({row.split('|')[1].strip()})")
    return missing


def contests_table(contests):
    """The medians of contests, a column a number of threads, and their ratios to ours."""
    scale, unit = (1e3, "ms") if contests[0]["rows"][0]["us"][1] >= 1e3 else (1, "µs")
    rows = []
    for name in [row["name"] for row in contests[0]["rows"]]:
        cells = [name]
        for contest in contests:
            row = next((r for r in contest["rows"] if r["name"] == name), None)
            cells.append(f"{figure(row['us'][1] / scale)} ({row['ratio'][1]:.2f} ×)" if row else "")
        rows.append(cells)
    return [f"{unit}, median"] + [f"{c['threads']} thread{'s' * (c['threads'] > 1)}"
                                  for c in contests], rows


def figure(x):
    """Three digits, or all of those before the point."""
    return f"{x:.0f}" if x >= 1000 else f"{x:.3g}"


def blocks_of(found, part):
    """A part: a table where it is a contest, with its plot, and else what it printed."""
    measured = found.get(part)
    if isinstance(measured, list) and measured and "us" in measured[0].get("rows", [{}])[0]:
        columns, rows = contests_table(measured)
        plot = os.path.join(os.path.dirname(found["runs"][part].path), f"{part}.svg")
        picture = []
        if part in PLOTTED and os.path.exists(plot):
            shutil.copy(plot, FOLDER)
            picture = [{"text": f"![times of the part {part}]({part}.svg)"}]
        return [{"text": f"`{part}`:"}, {"columns": columns, "rows": rows}, *picture]
    printed = found["printed"][part]
    if any(row.startswith("|---") for row in printed):  # Markdown, whose headings go below ours
        return [{"text": "\n".join(re.sub(r"^#+ ", "### ", row) for row in printed)}]
    return [{"text": f"`{part}`:"}, {"printed": printed}]


def versions_of(listed, name):
    """Of the compilers, and of the packages that the file has figures of."""
    wanted = PACKAGES.get(name, ("torch", "jax"))
    for version in listed:
        package, _, rest = version.partition(" ")
        if package in wanted or not re.fullmatch(r"[\d.]+", rest):
            yield re.sub(r" \(.*?\)", "", version)


def take(found, name):
    """A file of figures, of the parts that run.py has measured; None where it has none of them."""
    path = os.path.join(FOLDER, f"{name}.json")
    old = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            old = json.load(file)
    here = found["machine"]
    parts = [part for part in FILES[name] if part in found["printed"]]
    blocks = [block for part in parts for block in blocks_of(found, part)]
    runs = list(dict.fromkeys(found["runs"][part] for part in parts))
    return blocks and {
        "title": old.get("title", name), "order": old.get("order", 99),
        "machine": f"{here['model']}, {here['processors']} processors, {here['system']}",
        "versions": ", ".join(versions_of(found["versions"], name)), "command": "\n".join(run.command for run in runs),
        "date": max(run.date for run in runs), "blocks": blocks}


class Run(NamedTuple):
    """Where a part's figures come from."""

    path: str
    command: str
    date: str


def joined(paths):
    """What several runs on one machine have recorded, as if they were one."""
    found = {"machine": {}, "versions": [], "printed": {}, "runs": {}}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            run = json.load(file)
        if {**found["machine"], **run["machine"], "date": ""} != {**run["machine"], "date": ""}:
            raise SystemExit(f"{path} is of another machine than {paths[0]}: {run['machine']}")
        printed = {**found["printed"], **run["printed"]}
        versions = list(dict.fromkeys(found["versions"] + run["versions"]))
        ran = {**found["runs"],
               **dict.fromkeys(run["printed"], Run(path, run["command"], run["machine"]["date"]))}
        found.update(run, printed=printed, versions=versions, runs=ran)
    return found


def take_all(paths, only):
    found = joined(paths)
    if only and only not in FILES:
        raise SystemExit(f"{only} is no file of figures; write one of {', '.join(FILES)}")
    taken = []
    for name in [only] if only else FILES:
        lacks = [part for part in FILES.get(name, ()) if part not in found["printed"]]
        if not only and set(lacks) - set(WHEN_ASKED):  # the file has figures of those, too
            if len(lacks) < len(FILES[name]):
                print(f"left bench/results/{name}.json, as {', '.join(lacks)} did not run: "
                      f"--file {name} writes it without")
            continue
        made = take(found, name)
        if made:
            taken.append(name)
            with open(os.path.join(FOLDER, f"{name}.json"), "w", encoding="utf-8") as file:
                json.dump(made, file, indent=1, ensure_ascii=False)
                file.write("\n")
    if not taken:
        raise SystemExit(f"{' '.join(paths)}: no part of {only or 'a whole file'} among "
                         + ", ".join(sorted(found["printed"])))
    print("wrote " + ", ".join(f"bench/results/{name}.json" for name in taken))


def check_files(results):
    """Every part that run.cmake names is in one file, and every file has parts."""
    with open(os.path.join(FOLDER, "../run.cmake"), encoding="utf-8") as file:
        listed = re.search(r'-DPARTS="([^"]*)"', file.read())[1].split(";")
    parts = [part for name in FILES for part in FILES[name]]
    lost = [part for part in listed if parts.count(part) != 1]
    if lost:
        raise SystemExit(f"bench/tables.py: FILES lacks the parts {', '.join(lost)}")
    strange = [name for name, _ in results if name[:-5] not in (*FILES, PORTS)]
    if strange:
        raise SystemExit(f"no part of bench/run.cmake makes bench/results/{', '.join(strange)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--take", metavar="results.json", nargs="+")
    parser.add_argument("--file", help=", ".join(FILES))
    options = parser.parse_args()
    if options.take:
        take_all(options.take, options.file)
    results = load()
    text = page(results)
    if not options.check:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(text)
        return
    with open(PAGE, encoding="utf-8") as file:
        if file.read() != text:
            raise SystemExit("bench/results/README.md is not what the files in its folder say: "
                             "run python3 bench/tables.py")
    with open(os.path.join(FOLDER, "../../README.md"), encoding="utf-8") as file:
        missing = unknown(file.read(), results)
    check_files(results)
    if missing:
        raise SystemExit("README.md has figures that no file in bench/results has: "
                         + ", ".join(missing))
    print(f"{len(results)} files of figures, and the pages say the same")


if __name__ == "__main__":
    main()
