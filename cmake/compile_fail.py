#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""compile_fail.py SOURCE COMPILER [FLAGS...]: checks that a mistake is refused with a short and clear message.

The source begins with comment lines that say what is expected (patterns are Python regular expressions):

    // error:      matmul: inner dimensions differ: \\[2, 3\\] x \\[4, 5\\]      at least one
    // max-errors: 1        lines with "error:", default 1
    // max-lines:  14       lines of message, default 25; the source lines it echoes do not count
    // max-printed: 14      all lines that it prints; no limit by default
    // shows:      use where                             all of these anywhere, also in the source lines that it echoes
    // absent:     detail::                                               none of these anywhere

Each may be given for one compiler only: `// max-lines[clang]: 20` (gcc or clang), which then replaces the general line.
Without -DDFDX_FAIL the same program, its one mistake repaired, must compile: the test `controls` sees to it, for all in
one compilation.
"""
import re
import subprocess
import sys

KEYS = ("error", "max-errors", "max-lines", "max-printed", "shows", "absent")


def read_header(source: str, family: str) -> dict[str, list[str]]:
    general: dict[str, list[str]] = {}
    special: dict[str, list[str]] = {}
    with open(source, encoding="ascii") as lines:
        for line in lines:
            if not line.startswith("//"):
                break
            match = re.match(r"//\s*([a-z-]+)(?:\[(\w+)\])?:\s*(.*?)\s*$", line)
            if match and match[1] in KEYS:
                if match[2] is None:
                    general.setdefault(match[1], []).append(match[3])
                elif match[2] == family:
                    special.setdefault(match[1], []).append(match[3])
    return general | special


def main() -> int:
    source, compiler, *flags = sys.argv[1:]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    family = "clang" if "clang" in version else "gcc"
    expected = read_header(source, family)
    if not expected.get("error"):
        print(f"{source}: no `// error: <regex>` line")
        return 1

    command = [compiler, *flags, "-Werror", "-fsyntax-only", "-fdiagnostics-color=never", "-fmessage-length=0"]
    broken = subprocess.run([*command, "-DDFDX_FAIL=1", source], capture_output=True, text=True)
    text = broken.stderr
    # Only what the compiler says counts, not the source lines it echoes ("   12 |   code").
    lines = [line for line in text.splitlines() if not re.match(r" *\d* *\|", line)]
    said = [line for line in lines if re.search(r"error:|note:|required|In instantiation", line)]
    complaints = []
    if broken.returncode == 0:
        complaints.append("it compiles with DFDX_FAIL")
    for pattern in expected["error"]:
        if not any(re.search(pattern, line) for line in said):
            complaints.append(f"no message matches: {pattern}")
    for pattern in expected.get("shows", []):
        if not re.search(pattern, text):
            complaints.append(f"must appear: {pattern}")
    for pattern in expected.get("absent", []):
        if re.search(pattern, text):
            complaints.append(f"must not appear: {pattern}")
    errors = sum("error:" in line for line in lines)
    printed = len(text.splitlines())
    for key, count, default in (("max-errors", errors, 1), ("max-lines", len(lines), 25), ("max-printed", printed, None)):
        limit = expected.get(key, [default])[0]
        if limit is not None and count > int(limit):
            complaints.append(f"{key}: {count}, allowed are {limit}")
    print(f"{family}: {errors} errors, {len(lines)} lines, {printed} with those of the source")
    if complaints:
        print("\n".join(complaints), "\n--- the compiler's words:", text, sep="\n")
    return 1 if complaints else 0


sys.exit(main())
