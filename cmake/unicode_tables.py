#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Writes the tables of include/dfdx/text from Python's unicodedata, so that a newer Python brings a newer Unicode.

unicode_tables.py [FOLDER]   by default include/dfdx/text: unicode_tables.hpp, unicode_normal_tables.hpp
"""
import pathlib
import sys
import unicodedata

CATEGORIES = ["Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf",
              "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"]
ALTERNATING = len(CATEGORIES)  # Lu, Ll, Lu, Ll...
END = 0x110000


def category_runs() -> list[int]:
    kinds = [CATEGORIES.index(unicodedata.category(chr(c))) for c in range(END)]
    upper, lower = CATEGORIES.index("Lu"), CATEGORIES.index("Ll")
    runs = []
    c = 0
    while c < END:
        end = c
        while end + 1 < END and kinds[end] == upper and kinds[end + 1] == lower:
            end += 2
        if end - c >= 4 and (end == END or kinds[end] != lower):
            runs.append(c * 32 + ALTERNATING)
        else:
            end = c + 1
            while end < END and kinds[end] == kinds[c] and not (
                    kinds[c] == upper and end + 3 < END and kinds[end:end + 4] == [upper, lower, upper, lower]):
                end += 1
            if not runs or runs[-1] % 32 != kinds[c]:
                runs.append(c * 32 + kinds[c])
        c = end
    return runs


def lower_ranges() -> list[int]:
    """First, last, step, and what is added, for letters whose small letter is one code point."""
    pairs = [(c, ord(chr(c).lower()) - c) for c in range(END) if len(chr(c).lower()) == 1 and chr(c).lower() != chr(c)]
    ranges: list[list[int]] = []
    for c, by in pairs:
        last = ranges[-1] if ranges else None
        if last and by == last[3] and (c - last[1] == last[2] or (last[0] == last[1] and c - last[1] in (1, 2))):
            last[2] = c - last[1]
            last[1] = c
        else:
            ranges.append([c, c, 1, by])
    return [number for entry in ranges for number in entry]


def decompositions() -> list[int]:
    """Code point, and the one or two (then 0) that are canonically the same; Hangul syllables are computed."""
    table = []
    for c in range(END):
        text = unicodedata.decomposition(chr(c))
        if text and "<" not in text:
            parts = [int(part, 16) for part in text.split()]
            table += [c, *parts, *([0] * (2 - len(parts)))]
    return table


def composition_exclusions() -> list[int]:
    """Code points with two parts that composition does not make of them."""
    r = []
    for c in range(END):
        text = unicodedata.decomposition(chr(c))
        if text and "<" not in text and len(text.split()) == 2 and unicodedata.normalize("NFC", chr(c)) != chr(c):
            r.append(c)
    return r


def combining_runs() -> list[int]:
    runs, last = [], 0
    for c in range(END):
        now = unicodedata.combining(chr(c))
        if now != last:
            runs.append(c * 256 + now)
            last = now
    return runs


def write(path: pathlib.Path, opening: str, tables) -> None:
    text = ["// SPDX-License-Identifier: BSL-1.0", *opening.splitlines(), "#pragma once", "", "#include <cstdint>", "",
            "namespace dfdx::text::detail {", "", "// clang-format off"]
    for comment, kind, name, numbers in tables:
        text += [f"// {comment}", f"inline constexpr {kind} {name}[] = {{"]
        text += [*pack(numbers), "};", ""]
    text += ["// clang-format on", "}  // namespace dfdx::text::detail", ""]
    path.write_text("\n".join(text), "ascii")


def pack(numbers) -> list[str]:
    lines, line = [], ""
    for number in numbers:
        word = f"{number},"
        if len(line) + len(word) > 110:
            lines.append(line)
            line = ""
        line += word
    return [*lines, line]


def main() -> None:
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else (
        pathlib.Path(__file__).resolve().parent.parent / "include/dfdx/text")
    version = unicodedata.unidata_version
    made = f"made by cmake/unicode_tables.py of Unicode {version}; not to be edited."
    write(folder / "unicode_tables.hpp", f"// Categories and small letters of all code points, {made}", [
        ("Where a run of one category begins, times 32, plus the category (the order of Category; "
         f"{ALTERNATING}: Lu, Ll, Lu, Ll...).", "std::uint32_t", "category_runs", category_runs()),
        ("First, last, step, and what is added to make a small letter.", "std::int32_t", "lower_ranges", lower_ranges()),
    ])
    write(folder / "unicode_normal_tables.hpp", f"// Canonical decompositions and combining classes, {made}", [
        ("A code point and its one (and 0) or two parts.", "std::uint32_t", "decompositions", decompositions()),
        ("Those of two parts that are not composed again.", "std::uint32_t", "composition_exclusions",
         composition_exclusions()),
        ("Where a run of one combining class begins, times 256, plus the class.", "std::uint32_t", "combining_runs",
         combining_runs()),
    ])


if __name__ == "__main__":
    main()
