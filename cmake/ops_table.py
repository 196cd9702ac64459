#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""ops_table.py [--output FILE] [--check]: the table of all primitive ops, from the comments of their definitions.

One row for each struct with a `name` in include/dfdx/ops: shapes, dtypes, value and gradient, source. Functions that are
made of other ops have none. With --check it says what is missing, and fails if anything is.
"""
import argparse
import pathlib
import re
import sys

OPS = pathlib.Path(__file__).resolve().parent.parent / "include" / "dfdx" / "ops"
SECTIONS = ("Math", "Shapes", "Dtypes", "Source")


def definitions(path: pathlib.Path):
    """Yields (name, summary, {section: text}) of each op of a header."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        struct = re.match(r"struct (\w+)", line)
        if not struct or line.rstrip().endswith(";"):
            continue
        end = next((n for n in range(number, len(lines)) if lines[n].startswith("};")), number)
        named = next((m for n in range(number, end) if (m := re.search(r'\bname = "(\w+)"', lines[n]))), None)
        if not named:
            continue
        first = number
        while first > 0 and (lines[first - 1].startswith("///") or lines[first - 1].startswith("template")):
            first -= 1
        summary, sections, current = [], {}, None
        for text in (l[3:].strip() for l in lines[first:number] if l.startswith("///")):
            section = re.match(r"(Math|Shapes|Dtypes|Errors|Source|Example|Cost)\s+(.*)", text)
            if section:
                current = section[1]
                sections[current] = section[2]
            elif current and text:
                sections[current] += " " + text
            elif text:
                summary.append(text)
        yield named[1], " ".join(summary), sections


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rows, missing = [], []
    for path in sorted(OPS.glob("*.hpp")):
        for name, summary, sections in definitions(path):
            missing += [f"{path.name}: {name} has no {s}" for s in SECTIONS if s not in sections]
            cells = [f"`{name}`", re.sub(r"^\w+ - ", "", summary)] + [sections.get(s, "") for s in SECTIONS]
            rows.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    table = "\n".join(["| op | what it is | value, gradient | shapes | dtypes | source |", "|---|---|---|---|---|---|",
                       *sorted(rows)]) + "\n"
    if options.output:
        options.output.write_text(table, encoding="utf-8")
    elif not options.check:
        sys.stdout.write(table)
    for text in missing:
        print(text, file=sys.stderr)
    print(f"ops_table: {len(rows)} ops, {len(missing)} sections missing", file=sys.stderr)
    return 1 if options.check and (missing or not rows) else 0


if __name__ == "__main__":
    sys.exit(main())
