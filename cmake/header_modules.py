#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that every header compiles alone, since an include that is missing shows only when nothing else brought it in.

header_modules.py INCLUDE HEADERS FOLDER CLANG FLAGS...

INCLUDE is the folder of the headers, HEADERS a file with their names, a line each; what is made lies in FOLDER. All are
compiled once, as submodules of one module of clang's, where each sees the declarations and macros of what it includes,
directly or not, and no others: a tenth of the time that compilations of their own take. What they include of other
libraries is a second module, which each of those includes stands for: standard_names.py checks these includes.
"""
import pathlib
import re
import shutil
import subprocess
import sys


def foreign_includes(text: str) -> set[str]:
    """The headers of other libraries that a header includes whatever is defined."""
    depth, found = 0, set()
    for line in text.splitlines():
        if re.match(r"\s*#\s*if", line):
            depth += 1
        elif re.match(r"\s*#\s*endif", line):
            depth -= 1
        elif depth == 0 and (match := re.match(r"\s*#\s*include\s*<([^>]+)>", line)):
            found.add(match[1])
    return {name for name in found if not name.startswith("dfdx/")}


def main() -> int:
    include, listed, folder = (pathlib.Path(a) for a in sys.argv[1:4])
    command = [*sys.argv[4:], "-Werror", "-fmodules", "-fno-implicit-modules", "-fno-implicit-module-maps",
               "-Xclang", "-fmodules-local-submodule-visibility"]
    names = listed.read_text("utf-8").split()
    foreign = sorted(set().union(*(foreign_includes((include / name).read_text("utf-8")) for name in names)))

    shutil.rmtree(folder, ignore_errors=True)
    for name in foreign:  # found before the header itself, for -I is before -isystem
        place = folder / "instead" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("#pragma clang module import foreign\n")
    (folder / "foreign.hpp").write_text("".join(f"#include <{name}>\n" for name in foreign))
    maps = {"foreign": [folder / "foreign.hpp"], "dfdx": [include / name for name in names]}
    for module, headers in maps.items():
        lines = (f'  module m{i} {{ header "{header}" export * }}\n' for i, header in enumerate(headers))
        (folder / f"{module}.modulemap").write_text(f"module {module} {{\n{''.join(lines)}}}\n")

    def compile_module(name: str, *more: str) -> bool:
        return subprocess.run([*command, *more, f"-fmodule-name={name}", "-Xclang", "-emit-module", "-x", "c++",
                               "-c", f"{folder}/{name}.modulemap", "-o", f"{folder}/{name}.pcm"]).returncode == 0

    good = compile_module("foreign") and compile_module(
        "dfdx", "-ferror-limit=0", f"-I{folder}/instead", f"-fmodule-file=foreign={folder}/foreign.pcm",
        f"-fmodule-map-file={folder}/foreign.modulemap")
    print(f"{len(names)} headers {'compile' if good else 'do not compile'} alone")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
