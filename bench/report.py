#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""report.py [ROWS [RESULTS]]: prints the rows (one JSON object a line; standard input without ROWS) as a table.

A line with the key "roofs" is no row, but the machine's as roof.cpp prints them: rows that name their operations or bytes
get their share of what it allows. RESULTS is written as one JSON object: machine, roofs, rows. Geometric means of the
ratios stand below the table.
"""
import json
import math
import os
import pathlib
import sys

KEYS = ("bench", "case", "ours_ms", "peer", "peer_ms", "ratio", "roof", "error")


def machine() -> str:
    names = [line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    return f"{names[0] if names else 'unknown processor'}, {os.cpu_count()} threads; load now {load}"


def time(ms) -> str:
    if ms is None:
        return "-"
    for unit, scale in (("s", 1e-3), ("ms", 1.0), ("us", 1e3)):
        if ms * scale >= 1:
            return f"{ms * scale:.3g} {unit}" if ms * scale < 1000 else f"{ms * scale:.0f} {unit}"
    return f"{ms * 1e6:.3g} ns"


def number(value, form: str) -> str:
    return "-" if value is None else format(value, form)


def table(rows) -> str:
    lines = [("bench", "case", "ours", "peer", "peer's", "ratio", "roof", "error", "note")]
    for row in rows:
        lines.append((row["bench"], row["case"], time(row["ours_ms"]), row["peer"] or "missing", time(row["peer_ms"]),
                      number(row["ratio"], ".2f"), number(row["roof"], ".0%"), number(row["error"], ".1g"),
                      row.get("note") or ""))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    left = (0, 1, 3, 8)
    return "\n".join("  ".join(cell.ljust(width) if i in left else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines)


def means(rows) -> str:
    lines = []
    for key in dict.fromkeys((row["bench"], row["peer"]) for row in rows if row["ratio"]):
        ratios = [row["ratio"] for row in rows if (row["bench"], row["peer"]) == key and row["ratio"]]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"{key[0]} / {key[1]}: geometric mean {mean:.2f}, worst {max(ratios):.2f} of {len(ratios)} rows")
    return "\n".join(lines)


def share(row, roofs):
    """What the roofs allow by what the row takes: its operations at the peak, or its bytes from where they fit."""
    flops, moved = row.get("flops") or 0, row.get("bytes") or 0
    level = next((x for x in roofs["levels"] if moved <= x["bytes"]), (roofs["levels"] or [None])[-1])
    least = max(flops / roofs["flops"], moved / level["bandwidth"] if level else 0)
    return least * 1e3 / row["ours_ms"] if least and row["ours_ms"] else None


def main(arguments) -> None:
    text = pathlib.Path(arguments[0]).read_text() if arguments else sys.stdin.read()
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    roofs = next((row["roofs"] for row in rows if "roofs" in row), None)
    rows = [row for row in rows if "roofs" not in row]
    for row in rows:
        assert all(key in row for key in KEYS), row
        if row["roof"] is None and roofs:
            row["roof"] = share(row, roofs)
    print(machine())
    print(table(rows))
    print(means(rows))
    if len(arguments) > 1:
        body = ",\n".join(json.dumps(row) for row in rows)
        pathlib.Path(arguments[1]).write_text(
            f'{{"machine": {json.dumps(machine())}, "roofs": {json.dumps(roofs)}, "rows": [\n{body}\n]}}\n')


if __name__ == "__main__":
    main(sys.argv[1:])
