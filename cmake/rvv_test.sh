#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# rvv_test.sh FOLDER [COMPILER FLAG...] - compiles some of tests/kernels for RISC-V vectors of any length into FOLDER and
# runs them under qemu with short and with long ones. Status 77 where the tools are missing: install_dependencies.sh
# cross installs them, and the preset rvv runs all tests.
set -eu
folder=$1
shift
cd "$(dirname "$0")/.."
for tool in clang++-19 ld.lld-19 riscv64-linux-gnu-g++ qemu-riscv64-static; do
  command -v $tool >/dev/null 2>&1 || {
    echo "rvv_test: SKIPPED, no $tool; sh cmake/install_dependencies.sh cross installs it"
    exit 77
  }
done
mkdir -p "$folder"
# run NAME ARCHITECTURE FEATURES COMPILER-FLAG... - FEATURES are what qemu calls those that the architecture adds
run() {
  name=$1 architecture=$2 features=$3
  shift 3
  clang++-19 --target=riscv64-linux-gnu -march="$architecture" -O1 -fno-omit-frame-pointer -static -fuse-ld=lld-19 \
    -Werror -DDFDX_EMULATED "$@" -Itests/cross -Itests "tests/kernels/$name.cpp" -o "$folder/$name"
  for length in 128 1024; do
    echo "$name, $architecture, VLEN $length:"
    QEMU_CPU=rv64,v=true,vext_spec=v1.0,vlen=$length$features qemu-riscv64-static "$folder/$name"
  done
}
for name in rvv depthwise rvv_decoder gemm_int8 random attention pool; do run $name rv64gcv '' "$@"; done
run half rv64gcv_zvfh ,Zfh=true "$@"  # products of half numbers; qemu 7.2 has the vectors' part of it with the numbers'
