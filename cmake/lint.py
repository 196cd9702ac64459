#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks what a compiler does not: layers, sizes, umbrella, documentation, README snippets, plain ASCII, includes.

lint.py                       all checks; prints one line per finding and the size of the library
lint.py --each-source CMD...  runs CMD with the names of all C++ sources (clang-format uses this)
"""
import pathlib
import re
import subprocess
import sys

import standard_names

TOP = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = TOP / "include"

# --- the tables ------------------------------------------------------------------------------------------------------
# Which folder of include/dfdx may include which; its own headers always, and no others. The first column is an order.
_BASE = ["core", "value", "ops", "vocabulary"]
_ENGINES = [*_BASE, "kernels", "graph", "program", "tape"]
LAYERS = {
    "core": [],
    "value": ["core"],
    "ops": ["core", "value"],
    "kernels": ["core", "value"],
    "vocabulary": ["core", "value", "ops", "kernels"],
    "graph": _BASE,
    "program": [*_BASE, "kernels", "graph"],
    "tape": [*_BASE, "kernels"],
    "transforms": _ENGINES,
    "nn": _ENGINES,
    "optim": [*_ENGINES, "nn"],
    "io": [*_ENGINES, "nn", "optim"],
    "text": ["core", "io"],
    "metrics": _ENGINES,
    "report": ["core", "value", "io"],
    "data": [*_ENGINES, "nn", "optim", "io"],
    "dist": [*_ENGINES, "nn", "optim", "io", "data"],
    "models": [*_ENGINES, "nn", "io", "text"],
    "testing": [*_ENGINES, "nn", "optim", "io", "data"],
}
# Backends of kernels/ know the reference, and nobody knows them but their umbrella.
BACKENDS = {"reference": [], "simd": ["reference"], "rvv": ["reference"], "cuda": ["reference"]}

MAX_HEADER_LINES = 400
MAX_WIDTH = 110  # code; clang-format keeps it
MAX_COMMENT_WIDTH = 120
LONG_HEADERS: dict[str, int] = {}  # waivers: "dfdx/kernels/simd/gemm.hpp": 600,  and the reason

# Umbrella completeness: what <dfdx/dfdx.hpp> need not reach, for it needs a further library or compiler, or is for tests.
OPT_IN = re.compile(r"dfdx/(io\.hpp|io/|data/prefetch\.hpp|report\.hpp|report/|text\.hpp|text/|models\.hpp|models/|explain\.hpp|program/(called_(attention|grid|kernels|maps|norm|on_device|op)|explain|facts|host_step|on_device|own_step|profile)\.hpp|vocabulary/to_device\.hpp|cuda(_models|_ops)?\.hpp|kernels/cuda/|kernels/rvv/|kernels/quantized\.hpp|kernels/reference/(map|quantized|quantize)\.hpp|kernels/simd/(panel|quantized)\.hpp|core/(quantized|quantized_planes|utf8)\.hpp|testing/|testing\.hpp)")

# In these folders public structs have a /// comment, with a line that starts with each of these words. In ops/ that is
# asked of the ops, structs with a `name`; their families and descriptors need the comment alone.
DOCUMENTED = ("ops/", "nn/", "optim/", "metrics/")
SECTIONS = ("Math", "Shapes", "Dtypes", "Errors", "Source")
UNDOCUMENTED: dict[str, tuple[str, ...]] = {}  # waivers: "dfdx/nn/sequential.hpp:Sequential": ("Math",)

SOURCES = (".hpp", ".cpp", ".cu", ".cuh")
SPDX_FILES = (*SOURCES, ".py", ".sh", ".cmake")
FOLDERS = ("include", "tests", "examples", "bench", "cmake", "tools")
TIMESTAMP = re.compile(r"__DATE__|__TIME__|__TIMESTAMP__")
GENERATION = re.compile(r"__CUDA_ARCH__\s*[<>=!]")

findings: list[str] = []


def report(where: str, what: str) -> None:
    findings.append(f"{where}: {what}")


def files(suffixes) -> list[pathlib.Path]:
    return sorted(path for folder in FOLDERS for path in (TOP / folder).rglob("*")
                  if path.suffix in suffixes and path.is_file() and "build" not in path.relative_to(TOP).parts)


def name_of(path: pathlib.Path) -> str:
    return path.relative_to(TOP).as_posix()


def dfdx_includes(lines: list[str]):
    for number, line in enumerate(lines, 1):
        match = re.match(r"\s*#\s*include\s*<(dfdx/[^>]+)>", line)
        if match:
            yield number, match[1]


# --- the checks ------------------------------------------------------------------------------------------------------
def check_text(path: pathlib.Path) -> None:
    """ASCII, width, tabs, licence line."""
    where = name_of(path)
    try:
        text = path.read_bytes().decode("ascii")
    except UnicodeDecodeError as error:
        report(where, f"not ASCII at byte {error.start}")
        return
    lines = text.splitlines()
    if path.suffix in SPDX_FILES or path.name == "CMakeLists.txt":
        if not any("SPDX-License-Identifier: BSL-1.0" in line for line in lines[:3]):
            report(where, "no SPDX-License-Identifier: BSL-1.0 in the first three lines")
    if path.suffix in SOURCES:
        for number, line in enumerate(lines, 1):
            width = MAX_COMMENT_WIDTH if line.lstrip().startswith("//") else MAX_WIDTH
            if len(line) > width and not re.search(r"https?://", line):
                report(f"{where}:{number}", f"{len(line)} columns, {width} are allowed")
            if "\t" in line or line != line.rstrip():
                report(f"{where}:{number}", "tab or trailing space")
            if TIMESTAMP.search(line):
                report(f"{where}:{number}", "a time of compilation makes builds differ")
            if GENERATION.search(line):
                report(f"{where}:{number}", "code for one generation of GPUs: cuda_tests.cmake compiles one PTX for all")


def folder_of(name: str) -> str | None:
    parts = name.split("/")
    return parts[1] if len(parts) > 2 else None  # dfdx/x.hpp itself is an umbrella


def check_layers(name: str, lines: list[str]) -> None:
    folder = folder_of(name)
    if folder is None:
        return
    if folder not in LAYERS:
        report(name, f"folder {folder} has no place in LAYERS (cmake/lint.py)")
        return
    for number, header in dfdx_includes(lines):
        where = f"include/{name}:{number}"
        other = folder_of(header)
        if other is None:
            report(where, f"<{header}>: a folder includes no umbrella of the library")
        elif other != folder and other not in LAYERS[folder]:
            allowed = ", ".join(LAYERS[folder]) or "nothing"
            report(where, f"<{header}>: {folder} may include {allowed}; move the code down, or the includer up")
        elif folder == other == "kernels" and len(name.split("/")) > 3 and len(header.split("/")) > 3:
            backend, used = name.split("/")[2], header.split("/")[2]
            if backend in BACKENDS and used in BACKENDS and used != backend and used not in BACKENDS[backend]:
                report(where, f"<{header}>: backend {backend} may not include backend {used}")


def check_size(name: str, lines: list[str]) -> None:
    limit = LONG_HEADERS.get(name, MAX_HEADER_LINES)
    if len(lines) > limit:
        report(f"include/{name}", f"{len(lines)} lines, {limit} are allowed")


def check_opening(name: str, lines: list[str]) -> None:
    """SPDX, then a comment that says what the header is, then #pragma once."""
    comment = [line for line in lines[1:4] if re.match(r"//+ *\w", line)]
    if not comment:
        report(f"include/{name}", "no comment below the SPDX line says what the header is")
    if lines.count("#pragma once") != 1:
        report(f"include/{name}", "one #pragma once is needed")


def check_documentation(name: str, lines: list[str]) -> None:
    """Every struct or class at namespace scope has the mandatory sections in the /// block above it."""
    if not name.removeprefix("dfdx/").startswith(DOCUMENTED):
        return
    hidden = 0  # lines below `namespace detail {` up to its closing comment
    for number, line in enumerate(lines):
        if re.match(r"namespace detail\b", line):
            hidden += 1
        elif re.match(r"}\s*// namespace detail\b", line):
            hidden -= 1
        match = re.match(r"(?:struct|class) (\w+)\b(?!<)(?![^{;]*;)", line)  # no specialisation, no mere declaration
        if not match or hidden:
            continue
        above = number - 1
        while above >= 0 and re.match(r"template|\s+requires|requires|\s+\S.*>$", lines[above]):
            above -= 1
        block = []
        while above >= 0 and lines[above].startswith("///"):
            block.append(lines[above])
            above -= 1
        where = f"include/{name}:{number + 1}"
        if not block:
            report(where, f"{match[1]} has no /// comment")
            continue
        end = next((n for n in range(number, len(lines)) if lines[n].startswith("}")), number)
        if name.startswith("dfdx/ops/") and not any(re.search(r'\bname = "', text) for text in lines[number:end]):
            continue
        waived = UNDOCUMENTED.get(f"{name}:{match[1]}", ())
        missing = [word for word in SECTIONS if word not in waived
                   and not any(re.match(rf"/// {word}\b", text) for text in block)]
        if missing:
            report(where, f"{match[1]} is documented without {', '.join(missing)}")


def check_op_list(headers: dict[str, list[str]]) -> None:
    """Every op that takes values is in the list that the suite asks records for; those of graphs alone are not."""
    listed = set(re.findall(r"\b(?:first|next)\((\w+)\)", "\n".join(headers["dfdx/ops/each_op.hpp"])))
    for name, lines in headers.items():
        if not name.startswith("dfdx/ops/") or name in ("dfdx/ops/region.hpp", "dfdx/ops/side_by_side.hpp",
                                                       "dfdx/ops/slide.hpp"):
            continue
        for number, line in enumerate(lines):
            match = re.match(r"struct (\w+) : ", line)
            if not match or match[1] in listed:
                continue
            end = next((n for n in range(number, len(lines)) if lines[n].startswith("}")), number)
            body = "\n".join(lines[number:end])
            if re.search(r'\bname = "', body) and "arity = 0;" not in body:
                report(f"include/{name}:{number + 1}", f"{match[1]} is not in DFDX_EACH_OP")


def check_umbrella(headers: dict[str, list[str]]) -> None:
    reached: set[str] = set()
    waiting = ["dfdx/dfdx.hpp"]
    while waiting:
        name = waiting.pop()
        if name not in reached and name in headers:
            reached.add(name)
            waiting += [header for _, header in dfdx_includes(headers[name])]
    for name in sorted(headers.keys() - reached):
        if not OPT_IN.match(name):
            report(f"include/{name}", "cannot be reached from <dfdx/dfdx.hpp>")


def check_test_namespace(path: pathlib.Path) -> None:
    """Sources of a test program are compiled some at a time (developer.cmake): each has a namespace of its own."""
    if path.suffix != ".cpp" or not path.is_relative_to(TOP / "tests"):
        return
    lines = path.read_text("utf-8").splitlines()
    own = f"namespace tests::{path.parent.name}_{path.stem}"
    if any("TEST_CASE(" in line for line in lines):
        if not {f"{own} {{", f"namespace {path.parent.name} {{"} & {*lines}:  # or the folder's, as in refs
            report(name_of(path), f"is not in {own}")


def snippet(path: str, label: str) -> str | None:
    """The lines between `// [readme:x]` and `// [/readme:x]`, without their common indentation."""
    source = TOP / path
    if not source.exists():
        return None
    match = re.search(rf"^ *// \[{re.escape(label)}\]\n(.*?)^ *// \[/{re.escape(label)}\]", source.read_text("utf-8"),
                      re.M | re.S)
    if not match:
        return None
    lines = match[1].splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines)


def check_snippets(path: pathlib.Path) -> None:
    """A fenced block below `<!-- from FILE [readme:x] -->` is the marked part of FILE."""
    text = path.read_text("utf-8")
    for match in re.finditer(r"^<!-- from (\S+) \[(readme:[\w-]+)\] -->\n+```\w*\n(.*?)^```", text, re.M | re.S):
        where = f"{name_of(path)}:{text.count(chr(10), 0, match.start()) + 1}"
        expected = snippet(match[1], match[2])
        if expected is None:
            report(where, f"{match[1]} has no // [{match[2]}] ... // [/{match[2]}]")
        elif expected.strip("\n") != match[3].strip("\n"):
            report(where, f"differs from [{match[2]}] in {match[1]}: copy it anew")


def check_named(path: pathlib.Path, heading: str, headers: dict[str, list[str]]) -> None:
    """What the last column of the table below a heading calls or names is somewhere in a header."""
    known = {word for lines in headers.values() for line in lines for word in re.findall(r"\w+", line)}
    section = path.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|[^-].*\|$", section, re.M)
    if not rows:
        report(name_of(path), f"has no table below {heading}")
    for row in rows:
        for code in re.findall(r"`([^`]+)`", row.split(" | ")[-1]):
            for name in re.findall(r"[A-Za-z_]\w*(?=[<({])|^\w+$", code):
                if name not in known:
                    report(name_of(path), f"{heading}: there is no {name}")


def main() -> int:
    if sys.argv[1:2] == ["--each-source"]:
        sources = [str(path) for path in files(SOURCES)]
        return subprocess.run([*sys.argv[2:], *sources]).returncode if sources else 0

    for path in files((*SPDX_FILES, ".txt", ".json")):
        if "data" not in path.parts and "golden" not in path.parts:
            check_text(path)
            check_test_namespace(path)
    headers = {path.relative_to(INCLUDE).as_posix(): path.read_text("ascii", "replace").splitlines()
               for path in sorted(INCLUDE.rglob("*.hpp"))}
    for name, lines in headers.items():
        check_layers(name, lines)
        check_size(name, lines)
        check_opening(name, lines)
        check_documentation(name, lines)
    check_umbrella(headers)
    check_op_list(headers)
    for where, what in standard_names.findings(headers):
        report(where, what)
    for path in [*TOP.glob("*.md"), *INCLUDE.rglob("*.md"), *(TOP / "docs").rglob("*.md")]:
        check_snippets(path)
    check_named(INCLUDE / "dfdx/README.md", "From PyTorch", headers)

    for finding in findings:
        print(finding)
    sizes = [len(lines) for lines in headers.values()]
    median = sorted(sizes)[len(sizes) // 2] if sizes else 0
    print(f"lint: {len(headers)} headers, {sum(sizes)} lines (median {median}, longest {max(sizes, default=0)}); "
          f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
