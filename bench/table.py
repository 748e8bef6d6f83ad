#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Result files of compare.py as tables for people; README.md's are made by it.

    python3 bench/table.py results/compare_blocks_h200_2026-11-30.json      # prints the table
    python3 bench/table.py --update README.md    # writes each table between its marks anew; --check only compares

A table in a text stands between `<!-- table FILE ROWS -->` and `<!-- end -->`; ROWS are kinds of rows, by commas.
Columns: microseconds of hackc and of each peer, how much faster hackc is than the best peer, floor and share of it,
relative error against float64 of hackc and of the peer that errs least. Where a row was measured more than once, the
measurement with most peers counts, the last of these.
"""

import argparse
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ["eager", "compile", "max-autotune"]
NAMES = {"tinyllama-1.1b": "TinyLlama-1.1B", "qwen2.5-7b": "Qwen2.5-7B"}
MARK = re.compile(r"(<!-- table (\S+) (\S+) -->\n).*?(<!-- end -->)", re.S)


def rows_of(path, kinds):
    chosen = {}
    for row in json.loads(path.read_text())["rows"]:
        key = tuple(row[k] for k in ("model", "dtype", "row", "what"))
        if row["row"] in kinds and (key not in chosen or len(row["us"]) >= len(chosen[key]["us"])):
            chosen[key] = row
    order = [list(NAMES), ["bfloat16", "float16", "float32"], kinds]
    return sorted(chosen.values(), key=lambda r: [o.index(r[k]) for o, k in zip(order, ("model", "dtype", "row"))]
                  + [r.get("context") or 0, r.get("seq") or 0, r.get("batch") or 0])


def number(value, digits=None):
    return "" if value is None else f"{value:.{digits if digits is not None else int(value < 10)}f}"


def table(path, kinds):
    lines = ["| model | dtype | row | hackc | eager | compile | max-autotune | ratio | floor | share | error | best peer's |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows_of(path, kinds):
        us, errors, mark = row["us"], row["error"], " *" if row["disturbed"] else ""
        cells = [NAMES[row["model"]], row["dtype"], f"{row['row']} {row['what']}{mark}",
                 number(us["hackc"]), *(number(us.get(peer)) for peer in PEERS), number(min(row["ratio"].values()), 2),
                 number(row["floor_us"]), f"{100 * row['share_of_floor']:.0f} %", f"{errors['hackc']:.1e}",
                 f"{min(e for name, e in errors.items() if name != 'hackc'):.1e}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=pathlib.Path, help="a result file, or with --update or --check a text")
    parser.add_argument("--rows", default="decode,prefill", help="kinds of rows: decode, prefill, operation, model")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    path = options.file or HERE / "README.md"
    if not options.update and not options.check:
        print(table(path, options.rows.split(",")), end="")
        return 0
    text = path.read_text()
    new = MARK.sub(lambda m: m[1] + table(path.parent / m[2], m[3].split(",")) + m[4], text)
    if options.update:
        path.write_text(new)
    elif new != text:
        print(f"{path}: a table is not what its result file says; run bench/table.py --update {path}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
