#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# rvv_test.sh first|more FOLDER [COMPILER FLAG...] - compiles some of tests/kernels for RISC-V vectors of any length into
# FOLDER and runs them under qemu, with short and with long ones or with one of them: `first` what is written in their
# intrinsics and a program that trains a model, `more` what uses it. Status 77 where the tools are missing: install_dependencies.sh cross installs them, and
# the preset rvv runs all tests.
set -eu
part=$1 folder=$2
shift 2
cd "$(dirname "$0")/.."
for tool in clang++-19 ld.lld-19 riscv64-linux-gnu-g++ qemu-riscv64-static; do
  command -v $tool >/dev/null 2>&1 || {
    echo "rvv_test: SKIPPED, no $tool; sh cmake/install_dependencies.sh cross installs it"
    exit 77
  }
done
mkdir -p "$folder"
# run SOURCE LENGTHS ARCHITECTURE FEATURES COMPILER-FLAG... - FEATURES are what qemu calls those that the architecture
# adds
run() {
  source=$1 name=$(basename "$1") lengths=$2 architecture=$3 features=$4
  shift 4
  clang++-19 --target=riscv64-linux-gnu -march="$architecture" -O1 -fno-omit-frame-pointer -static -fuse-ld=lld-19 \
    -Werror -DDFDX_EMULATED "$@" -Itests/cross -Itests "$source.cpp" -o "$folder/$name"
  for length in $lengths; do
    echo "$name, $architecture, VLEN $length:"
    QEMU_CPU=rv64,v=true,vext_spec=v1.0,vlen=$length$features qemu-riscv64-static "$folder/$name"
  done
}
if [ "$part" = first ]; then
  run tests/kernels/rvv '128 1024' rv64gcv '' "$@"
  # Products of half numbers; qemu 7.2 has the vectors' part of it with the numbers'.
  run tests/kernels/half 128 rv64gcv_zvfh ,Zfh=true "$@"
  run examples/00_hello '128 1024' rv64gcv '' "$@"
  exit
fi
for name in rvv_decoder random pool; do run tests/kernels/$name '128 1024' rv64gcv '' "$@"; done
for name in gemm_int8 attention; do run tests/kernels/$name 1024 rv64gcv '' "$@"; done
run tests/kernels/depthwise 128 rv64gcv '' "$@"
