#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""count.py FOLDER [COMPILER FLAG...] - instructions that kernels retire on RISC-V, one table.

qemu's user mode has no clock worth reading and, in version 7.2, no counter. It logs the instructions of each block that
it translates and each block that it runs; their products are the instructions retired. A kernel is run twice and once,
and the difference counted: what starts and checks the program is in both.
"""
import os
import subprocess
import sys

CASES = {"gelu": "gelu(a x + b) + r", "axpy": "a x + b", "softmax": "softmax of rows of 512", "sum": "sum of 16384",
         "transpose": "transpose 128 x 128", "gemm64": "product 64^3", "gemm256": "product 256^3",
         "half64": "product 64^3 of f16", "bfloat64": "product 64^3 of bf16", "bytes64": "product 64^3 of i8", "attention": "attention 64 x 64 x 64", "gather": "gather 8 x 512",
         "pool": "largest of 2 x 2, 16x32^2", "quantized": "q8_0 64 x 512 x 1", "q4_k": "q4_k 64 x 512 x 1",
         "q6_k": "q6_k 64 x 512 x 1", "uniform": "16384 uniform numbers", "normal": "16384 normal numbers",
         "depthwise": "3 x 3 depthwise, 16x32^2", "weights": "its weights' gradient", "decode": "decoder 4x64, 128 places"}
TARGETED = ("gelu", "axpy", "gemm64", "gemm256")  # the rows that the target is about
LENGTHS = (128, 256, 512, 1024)
FIXED = (128, 256, 512)  # those that xsimd has
HERE = os.path.dirname(os.path.abspath(__file__))
COMMON = ["clang++-19", "--target=riscv64-linux-gnu", "-std=c++20", "-O2", "-static", "-fuse-ld=lld-19",
          "-fno-omit-frame-pointer"]


def build(folder, name, flags):
    program = os.path.join(folder, name)
    subprocess.run(COMMON + flags + [os.path.join(HERE, "kernels.cpp"), "-o", program], check=True)
    return program


def instructions(program, case, how, times, length):
    """All that the program retires; "wrong" if its result is, "-" if it has no such kernel or qemu ends at a signal (7.2
    has assertions that fail at some instructions)."""
    cpu = "rv64,v=true,Zfh=true,vext_spec=v1.0,vlen=%d" % length
    run = subprocess.Popen(["qemu-riscv64-static", "-cpu", cpu, "-d", "in_asm,exec,nochain", program, case, how,
                            str(times)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    sizes, total, at, count = {}, 0, None, 0
    for line in run.stderr:
        if line.startswith(b"Trace"):
            if at is not None:
                sizes[at] = count
                at = None
            total += sizes[line.split(b"/", 2)[1]]
        elif line.startswith(b"0x"):
            if at is None:
                at, count = line[2:line.index(b":")].rjust(16, b"0"), 0
            count += 1
        elif line.startswith(b"IN:") and at is not None:
            sizes[at] = count
            at = None
    output = run.stdout.read().decode()
    if run.wait() in (1, 3) or run.returncode < 0:
        return "wrong" if run.returncode == 1 else "-"
    if run.returncode != 0:
        raise SystemExit("count.py: %s %s at VLEN %d: status %d %s" % (case, how, length, run.returncode, output))
    return total


def cost(program, case, how, length):
    once, twice = (instructions(program, case, how, times, length) for times in (1, 2))
    return once if isinstance(once, str) else twice if isinstance(twice, str) else twice - once


def main():
    folder, flags = sys.argv[1], sys.argv[2:]
    os.makedirs(folder, exist_ok=True)
    ours = build(folder, "any_length", flags + ["-march=rv64gcv"])
    halves = build(folder, "any_length_zvfh", flags + ["-march=rv64gcv_zvfh"])
    plain = build(folder, "plain", flags + ["-march=rv64gc"])
    fixed = {n: build(folder, "xsimd%d" % n, flags + ["-march=rv64gcv_zvl%db" % n, "-mrvv-vector-bits=zvl"])
             for n in FIXED}
    print("%-24s %5s %10s %10s %10s %9s %9s %7s" % ("kernel", "VLEN", "ours", "plain", "xsimd", "plain by", "xsimd by",
                                                      "target"))
    failed = 0
    for case, title in CASES.items():
        scalar = cost(plain, case, "plain", 128)
        for length in LENGTHS:
            mine = cost(halves if case == "half64" else ours, case, "library", length)
            theirs = cost(fixed[length], case, "library", length) if length in fixed else "-"
            if isinstance(mine, str) or isinstance(scalar, str):
                print("%-24s %5d wrong" % (title, length), flush=True)
                failed = 1
                continue
            target = 0.8 * length / 32 if case in TARGETED else None
            failed |= target is not None and scalar / mine < target
            print("%-24s %5d %10d %10d %10s %9.2f %9s %7s" % (
                title, length, mine, scalar, theirs, scalar / mine,
                "-" if isinstance(theirs, str) else "%.2f" % (theirs / mine), "%.1f" % target if target else "-"),
                flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
