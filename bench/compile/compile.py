#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""compile.py FLAGS [REPETITIONS]: what programs cost to compile, with -O2 unless said, one row of bench/report.py each.

FLAGS is a file with one switch a line (include folders, standard), as bench/CMakeLists.txt writes it. Time is that of
the processor, user and system, best of three; memory the largest process's. The peer is the target.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TARGET_MB = 600
CASES = (  # name, file, switches, target in seconds
    ("the header alone", "header.cpp", [], None),
    ("hello-gradient", "gradient.cpp", [], 2.5),
    ("words training program", "words.cpp", [], 6.0),
    ("words training, evaluation and sampling", "words.cpp", ["-DSAMPLE"], None),
    ("residual MLP, 50 blocks, repeated", "blocks.cpp", ["-DBLOCKS=50"], 8.0),
    ("residual MLP, 1 block, in an array", "blocks.cpp", ["-DBLOCKS=1", "-DUNROLLED"], None),
    ("residual MLP, 10 blocks, in an array", "blocks.cpp", ["-DBLOCKS=10", "-DUNROLLED"], None),
    ("residual MLP, 50 blocks, in an array", "blocks.cpp", ["-DBLOCKS=50", "-DUNROLLED"], 8.0),
    *((f"training a character GPT of {n} layers", "gpt.cpp", [f"-DLAYERS={n}"], 20.0) for n in (1, 4, 16, 24, 64)),
    ("one sum, eager", "sum.cpp", [], None),
    ("one convolution, compiled", "conv.cpp", [], None),
    ("one convolution, eager", "conv.cpp", ["-DEAGER"], None),
    ("training a small U-Net", "unet.cpp", [], None),
    ("lesson 10, the tape", "../../examples/10_tape.cpp", [], None),
    ("lesson 10, ops compiled elsewhere", "../../examples/10_tape.cpp", ["-DDFDX_SEPARATE"], None),
    ("lesson 10, all ops for other files as well", "../../examples/10_tape.cpp",
     ["-DDFDX_SEPARATE", "-DDFDX_IMPLEMENTATION"], None),
    *(("lesson 11, transforms", "../../examples/11_transforms.cpp", [level], None) for level in ("-O0", "-O2")),
)
COMPILERS = {  # for each what it says when a limit is too low for a large graph, and the switch that lifts it
    "g++": {"-fconstexpr-ops-limit": "-fconstexpr-ops-limit=2000000000"},
    "clang++-19": {"maximum step limit": "-fconstexpr-steps=2000000000",
                   "expression nesting limit": "-fbracket-depth=4096"},
}


def compile_once(command: list[str]) -> tuple[float, float, str]:
    """Seconds, megabytes of memory, and the messages of a compiler that fails."""
    with tempfile.TemporaryFile("w+") as messages:
        child = subprocess.Popen(command, stdout=messages, stderr=messages)
        _, status, used = os.wait4(child.pid, 0)  # of the driver and the processes that it has waited for
        child.returncode = os.waitstatus_to_exitcode(status)
        messages.seek(0)
        text = messages.read()
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, text if child.returncode else ""


def measure(command: str, case, flags: list[str], repetitions: int) -> bool:
    name, source, switches, target = case
    switches = ["-O2", *switches]  # the last level counts
    level = [switch for switch in switches if switch.startswith("-O")][-1]
    row = {"bench": "compile", "case": f"{name}, {command} {level}", "ours_ms": None,
           "peer": "target" if target else "no target", "peer_ms": target and target * 1000, "ratio": None,
           "roof": None, "error": None, "peak_mb": None, "object_kb": None, "note": ""}
    with tempfile.TemporaryDirectory() as folder:
        line = [command, *flags, *switches, "-c", str(HERE / source), "-o", f"{folder}/program.o"]
        seconds, megabytes, messages = compile_once(line)
        for _ in COMPILERS[command]:  # one limit may hide the next
            remedies = [switch for complaint, switch in COMPILERS[command].items() if complaint in messages]
            if remedies:
                line += remedies
                row["note"] += "".join(f"; with {switch}" for switch in remedies)
                seconds, megabytes, messages = compile_once(line)
        for _ in range(repetitions - 1 if not messages else 0):
            again, memory, _ = compile_once(line)
            seconds, megabytes = min(seconds, again), min(megabytes, memory)
        size = 0 if messages else os.path.getsize(f"{folder}/program.o")
    if messages:
        errors = [text for text in messages.splitlines() if "error" in text]
        print("\n".join(errors[:5]), file=sys.stderr)
        row["note"] = "does not compile"
    else:
        row["ours_ms"] = round(seconds * 1000, 1)
        row["ratio"] = target and round(seconds / target, 4)
        row["peak_mb"] = round(megabytes)
        row["object_kb"] = round(size / 1024)
        row["note"] = f"{megabytes:.0f} MB of {TARGET_MB}, object {size / 1024:.0f} KB" + row["note"]
    print(json.dumps(row), flush=True)
    return not messages


def main(flags_file: str, repetitions: str = "3") -> int:
    flags = pathlib.Path(flags_file).read_text().split("\n")
    flags = [flag for flag in flags if flag]
    compilers = [command for command in COMPILERS if shutil.which(command)]
    done = [measure(command, case, flags, int(repetitions)) for command in compilers for case in CASES]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
