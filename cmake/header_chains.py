#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that every header compiles alone, since an include that is missing shows only when nothing else brought it in.

header_chains.py INCLUDE HEADERS STANDARD FOLDER COMPILER FLAGS...

INCLUDE is the folder of the headers, HEADERS a file with their names, a line each, and STANDARD a header that is
precompiled for all. What a header includes may as well be compiled before it: so a chain of headers, each included by
the next, is one compilation, and there are as few chains as there can be. What has not changed since a run that went
well, by the record in FOLDER, is not compiled again.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys


def includes(text: str) -> list[str]:
    """The headers of the library that a header includes whatever is defined."""
    depth, found = 0, []
    for line in text.splitlines():
        if re.match(r"\s*#\s*if", line):
            depth += 1
        elif re.match(r"\s*#\s*endif", line):
            depth -= 1
        elif depth == 0 and (match := re.match(r"\s*#\s*include\s*<(dfdx/[^>]+)>", line)):
            found.append(match[1])
    return found


def closures(texts: dict[str, str]) -> dict[str, set[str]]:
    """What each header includes, and what that includes."""
    direct = {name: [h for h in includes(text) if h in texts] for name, text in texts.items()}
    done: dict[str, set[str]] = {}

    def closure(name: str) -> set[str]:
        if name not in done:
            done[name] = set()  # a cycle, which the compiler will tell of, ends here
            done[name] = set(direct[name]).union(*(closure(h) for h in direct[name]))
        return done[name]

    for name in texts:
        closure(name)
    return done


def chains(names: list[str], below: dict[str, set[str]]) -> list[list[str]]:
    """As few chains as cover all names: a largest matching of names with names behind them (Fulkerson 1956)."""
    above = {name: sorted((n for n in names if name in below[n]), key=lambda n: (len(below[n]), n)) for name in names}
    before: dict[str, str] = {}

    def find_next(name: str, tried: set[str]) -> bool:
        for candidate in above[name]:
            if candidate not in tried:
                tried.add(candidate)
                if candidate not in before or find_next(before[candidate], tried):
                    before[candidate] = name
                    return True
        return False

    for name in sorted(names, key=lambda n: (len(below[n]), n)):
        find_next(name, set())
    behind = {name: candidate for candidate, name in before.items()}
    found = []
    for name in names:
        if name not in before:
            chain = [name]
            while chain[-1] in behind:
                chain.append(behind[chain[-1]])
            found.append(chain)
    return sorted(found, key=lambda chain: -len(below[chain[-1]]))  # the longest work first


def main() -> int:
    sys.setrecursionlimit(10000)
    include, listed, standard, folder = (pathlib.Path(a) for a in sys.argv[1:5])
    compiler = sys.argv[5:]
    texts = {path.relative_to(include).as_posix(): path.read_text("utf-8") for path in include.rglob("*.hpp")}
    below = closures(texts)
    names = listed.read_text("utf-8").split()

    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "checked.json"
    known = set(json.loads(record.read_text())) if record.exists() else set()

    common = folder / "standard_library.hpp"
    text = standard.read_text("utf-8")
    suffix = ".pch" if "clang" in pathlib.Path(compiler[0]).name else ".gch"
    precompiled = pathlib.Path(f"{common}{suffix}")
    if not precompiled.exists() or not common.exists() or common.read_text("utf-8") != text:
        common.write_text(text, "utf-8")
        known = set()
        subprocess.run([*compiler, "-x", "c++-header", str(common), "-o", str(precompiled)], check=True)

    def state(chain: list[str]) -> str:
        digest = hashlib.sha256(repr((compiler, text, chain)).encode())
        for name in sorted(below[chain[-1]] | set(chain)):
            digest.update(texts[name].encode())
        return digest.hexdigest()

    def check(chain: list[str]) -> tuple[str, str]:
        wanted = [argument for name in chain for argument in ("-include", name)]
        run = subprocess.run([*compiler, "-Werror", "-fsyntax-only", "-include", str(common), *wanted,
                              "-x", "c++", os.devnull], capture_output=True, text=True)
        return (state(chain) if run.returncode == 0 else ""), run.stdout + run.stderr

    all_chains = chains(names, below)
    left = [chain for chain in all_chains if state(chain) not in known]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for good, told in pool.map(check, left):
            if good:
                known.add(good)
            else:
                failed += 1
                print(told)
    record.write_text(json.dumps(sorted(known & {state(chain) for chain in all_chains})))
    print(f"{len(names)} headers in {len(all_chains)} chains, {len(left)} compiled, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
