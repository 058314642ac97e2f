# SPDX-License-Identifier: Apache-2.0
"""Pages of figures from bench/results/*.json, so that each figure stands in one place.

python3 bench/tables.py                   writes bench/results/README.md
python3 bench/tables.py --check           fails where that page, or the README's table, differs
python3 bench/tables.py --take results.json --part decoder
                                          makes bench/results/decoder.json of run.py's record

A file has title, machine, versions, command, date, origin, and blocks: paragraphs ({"text": ...})
and tables ({"columns": [...], "rows": [[...]]}). Its origin is "recorded", by --take, or
"transcribed": copied by hand from what the benchmarks printed.
"""

import argparse
import glob
import json
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
PAGE = os.path.join(FOLDER, "README.md")
NEEDED = ("title", "order", "machine", "versions", "command", "date", "origin", "blocks")
ORIGINS = {"recorded": "Recorded by the benchmarks",
           "transcribed": "Copied by hand from what the benchmarks printed"}


def load():
    results = []
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.json"))):
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        missing = [key for key in NEEDED if key not in result]
        if missing:
            raise SystemExit(f"{path} lacks {', '.join(missing)}")
        if result["origin"] not in ORIGINS:
            raise SystemExit(f"{path}: origin is {result['origin']}, not {' or '.join(ORIGINS)}")
        for block in result["blocks"]:
            for row in block.get("rows", []):
                if len(row) != len(block["columns"]):
                    raise SystemExit(f"{path}: {len(row)} cells below {len(block['columns'])} "
                                     f"columns: {row[0]}")
        results.append((os.path.basename(path), result))
    return sorted(results, key=lambda r: (r[1]["order"], r[0]))


def line(cells):
    return "|" + "".join(f" {cell} |" for cell in cells)


def page(results):
    out = ["# Figures", "",
           "`python3 bench/tables.py` makes this page of the files in this folder; do not edit it. "
           "[Benchmarks](../README.md) says how they are measured.", ""]
    for name, result in results:
        out += [f"## {result['title']}", "",
                f"[{name}]({name}), {result['date']}; {result['machine']}; {result['versions']}. "
                f"{ORIGINS[result['origin']]}.", "",
                "```sh", result["command"], "```", ""]
        for block in result["blocks"]:
            if "text" in block:
                out += [block["text"], ""]
            else:
                rule = "|" + "---|" * len(block["columns"])
                out += [line(block["columns"]), rule, *map(line, block["rows"]), ""]
    return "\n".join(out).rstrip("\n") + "\n"


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
            cells.append(f"{row['us'][1] / scale:.3g} ({row['ratio'][1]:.2f} ×)" if row else "")
        rows.append(cells)
    return [f"{unit}, median"] + [f"{c['threads']} thread(s)" for c in contests], rows


def cell(value):
    """A number to three digits; of the 10th percentile, the median and the 90th, the median."""
    if isinstance(value, list) and len(value) == 3:
        value = value[1]
    if isinstance(value, dict):
        return ", ".join(f"{key} {cell(part)}" for key, part in value.items())
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def records_table(rows):
    """A row a record, a column a key."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return columns, [[cell(row[key]) if key in row else "" for key in columns] for row in rows]


def take(path, part):
    """A part that run.py has measured, as a file of figures."""
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    if part not in found:
        raise SystemExit(f"{path} has no part {part}; it has "
                         + ", ".join(sorted(found.keys() - {"machine", "versions", "command"})))
    measured = found[part]
    if isinstance(measured, list) and measured and "rows" in measured[0]:
        contest = "us" in measured[0]["rows"][0]
        tables = [contests_table(measured)] if contest else [records_table(m["rows"])
                                                             for m in measured]
    else:
        tables = [records_table(measured if isinstance(measured, list) else [measured])]
    here = found["machine"]
    return {"title": part, "order": 99,
            "machine": f"{here['model']}, {here['processors']} processors, {here['system']}",
            "versions": ", ".join(found["versions"]), "command": found["command"],
            "date": here["date"], "origin": "recorded",
            "blocks": [{"columns": columns, "rows": rows} for columns, rows in tables]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--take", metavar="results.json")
    parser.add_argument("--part")
    options = parser.parse_args()
    if options.take:
        made = take(options.take, options.part)
        with open(os.path.join(FOLDER, f"{options.part}.json"), "w", encoding="utf-8") as file:
            json.dump(made, file, indent=1, ensure_ascii=False)
            file.write("\n")
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
    if missing:
        raise SystemExit("README.md has figures that no file in bench/results has: "
                         + ", ".join(missing))
    print(f"{len(results)} files of figures, and the pages say the same")


if __name__ == "__main__":
    main()
