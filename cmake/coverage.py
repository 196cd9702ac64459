#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""coverage.py: checks tests/coverage.md: each row names a test file and a record in it, and there are 47 of them."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
FUNCTIONS = 47


def main() -> int:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]]
            for line in (TOP / "tests" / "coverage.md").read_text(encoding="utf-8").splitlines()
            if re.match(r"\| [a-z]", line) and not line.startswith("| function")]
    findings = [] if len(rows) == FUNCTIONS else [f"{len(rows)} rows, {FUNCTIONS} required"]
    refs = "".join(p.read_text(encoding="utf-8") for p in sorted((TOP / "tests" / "refs").glob("*.cpp")))
    for name, _, file, record, reference in rows:
        path = TOP / file
        if not path.is_file():
            findings.append(f"{name}: no file {file}")
        elif not re.search(rf"\b{record}\b", path.read_text(encoding="utf-8")):
            findings.append(f"{name}: nothing about {record} in {file}")
        if f'"{reference}"' not in refs and not re.search(rf"\({reference}\)|\b{reference}\b", refs):
            findings.append(f"{name}: no reference cases of {reference}")
    print("\n".join(findings))
    print(f"coverage: {len(rows)} functions, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
