#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes the single header: every header that <dfdx/dfdx.hpp> reaches, each once, in the order of inclusion.

Rules, refused with the reason and the remedy when broken:
  - a header names others of the library as <dfdx/...>, never by relative path;
  - includes of other libraries are hoisted to the top, sorted and unique; inside #if they stay where they are;
  - the library's own headers are included unconditionally, except in a gate (GATES), since a walker that emits a header
    once would lose it when its first inclusion sits in a branch that is not taken. A gate's header stays in its #if;
  - every header is reachable, except what needs a further library, compiler or header of its own (OPT_IN).
The output depends on the sources and the version alone: no time, no path.
"""
import argparse
import pathlib
import re
import sys

sys.dont_write_bytecode = True  # the sources may be read-only
from lint import OPT_IN  # noqa: E402

ROOT = "dfdx/dfdx.hpp"
GATES = {"dfdx/kernels/matmul.hpp", "dfdx/kernels/simd/batch.hpp", "dfdx/kernels/rvv/vec.hpp", "dfdx/cuda.hpp"}

INCLUDE = re.compile(r'\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")')
SPDX = "// SPDX-License-Identifier: BSL-1.0"


def fail(where: str, why: str, remedy: str) -> None:
    sys.exit(f"amalgamate: {where}: {why}\n  remedy: {remedy}")


class Amalgamation:
    def __init__(self, include_dir: pathlib.Path, remap: bool) -> None:
        self.dir = include_dir
        self.remap = remap
        self.hoisted: set[str] = set()
        self.body: list[str] = []
        self.done: set[str] = set()
        self.open: list[str] = []
        self.gated_by: dict[str, str] = {}
        self.reached = self.reach(ROOT, set())

    def lines(self, name: str) -> list[str]:
        path = self.dir / name
        if not path.exists():
            fail(self.open[-1] if self.open else "dfdx", f"<{name}> does not exist", "mend the include")
        return path.read_text(encoding="ascii").splitlines()

    def includes(self, name: str):
        """(index, header, depth of #if around it) of each include line."""
        depth = 0
        for index, line in enumerate(self.lines(name)):
            directive = re.match(r"\s*#\s*(if|endif)", line)
            if directive:
                depth += 1 if directive[1] == "if" else -1
            match = INCLUDE.match(line)
            if match:
                if match[2]:
                    fail(f"{name}:{index + 1}", f'#include "{match[2]}"', "spell it <dfdx/...>")
                yield index, match[1], depth

    def reach(self, name: str, seen: set[str]) -> set[str]:
        """The headers that `name` includes unconditionally, itself among them."""
        if name not in seen:
            seen.add(name)
            for _, header, depth in self.includes(name):
                if header.startswith("dfdx/") and depth == 0:
                    self.reach(header, seen)
        return seen

    def emit(self, name: str, gated: bool) -> None:
        """Appends a header behind what it includes; `gated`: the text stands inside an #if of a gate."""
        if name in self.open:
            fail(name, "includes itself through " + " -> ".join(self.open), "break the cycle")
        if name in self.done:
            return
        self.done.add(name)
        self.open.append(name)
        kept: dict[int, str | None] = {}  # lines that hold an include, and what takes their place (None: the line)
        for index, header, depth in self.includes(name):
            if not header.startswith("dfdx/"):
                kept[index] = None if gated or depth else ""
                if not gated and not depth:
                    self.hoisted.add(header)
            elif depth == 0:
                self.emit(header, gated)
                kept[index] = ""
            elif name not in GATES:
                fail(f"{name}:{index + 1}", f"<{header}> is included inside #if", "include it unconditionally, or "
                     "through a gate (GATES in amalgamate.py)")
            else:
                kept[index] = self.gate(name, header)
        self.append(name, kept)
        self.open.pop()

    def gate(self, name: str, header: str) -> str:
        """The text of a conditionally included header; what it shares with the rest is emitted before the gate."""
        if header in self.reached:
            fail(name, f"<{header}> sits in an #if here but is included elsewhere too", "include it in one way only")
        for shared in sorted(self.reach(header, set()) & self.reached):
            self.emit(shared, False)
        outer, self.body = self.body, []
        self.emit(header, True)
        text, self.body = "\n".join(self.body), outer
        return text

    def append(self, name: str, kept: dict[int, str | None]) -> None:
        self.body.append(f"\n// ---- {name} ----")
        if self.remap:
            self.body.append(f'#line 1 "{name}"')
        blank = True
        for index, line in enumerate(self.lines(name)):
            replacement = kept.get(index)
            drop = replacement == "" or line == SPDX or line.startswith("#pragma once")
            if replacement:
                self.body.append(replacement)
            elif self.remap:
                self.body.append("" if drop else line)
            elif not drop and not (blank and not line):  # no two empty lines in a row
                self.body.append(line)
                blank = not line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("--include-dir", type=pathlib.Path, default=here.parent / "include")
    parser.add_argument("--version", default="")
    parser.add_argument("--output", type=pathlib.Path, help="default: standard output")
    parser.add_argument("--remap", action="store_true", help="#line directives: messages name the original headers")
    arguments = parser.parse_args()

    work = Amalgamation(arguments.include_dir, arguments.remap)
    work.emit(ROOT, False)
    for path in sorted(arguments.include_dir.rglob("*.hpp")):
        name = path.relative_to(arguments.include_dir).as_posix()
        if name not in work.done and not OPT_IN.match(name):
            fail(name, f"cannot be reached from <{ROOT}>", "include it in its folder's umbrella header")

    version = f" {arguments.version}" if arguments.version else ""
    text = "\n".join([
        SPDX,
        f"// dfdx{version}, generated from include/dfdx by cmake/amalgamate.py; not for editing.",
        "#ifndef DFDX_SINGLE_HEADER",
        "#define DFDX_SINGLE_HEADER",
        "",
        *(f"#include <{header}>" for header in sorted(work.hoisted)),
        *work.body,
        "",
        "#endif  // DFDX_SINGLE_HEADER",
        "",
    ])
    if arguments.output is None:
        sys.stdout.write(text)
    elif not arguments.output.exists() or arguments.output.read_text(encoding="ascii") != text:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
