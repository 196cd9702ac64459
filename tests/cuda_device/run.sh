#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# run.sh [build|run] [name...]: the tests of the emulated device on a real one. `build` compiles tests/cuda_emulated/*.cpp
# with nvcc into build/cuda_device, `run` runs what is there; without an argument both. ARCH (sm_90a) says for which
# generation. Tests tagged [emulated] ask what only an emulation answers, and are left out; nothing is run without a GPU.
set -eu
cd "$(dirname "$0")/../.."
out=build/cuda_device
mkdir -p $out
what=${1:-all}
[ $# -eq 0 ] || shift
names=${*:-warpgroups attention products kernels loops clusters convolutions indices programs called_places}
if [ "$what" != run ]; then
  command -v nvcc >/dev/null || { echo 'cuda_device/run.sh: no nvcc' >&2; exit 1; }
  for name in $names; do
    nvcc -std=c++20 -O2 -x cu -Iinclude -Itests -isystem build/deps/usr/include -include tests/cuda_device/cuda_fake.hpp \
      -arch="${ARCH:-sm_90a}" --expt-relaxed-constexpr --extended-lambda -o $out/$name \
      tests/cuda_emulated/$name.cpp -Lbuild/deps/usr/lib -lCatch2Main -lCatch2 -lcublasLt
  done
fi
[ "$what" != build ] || exit 0
failed=0
for name in $names; do
  echo "$name:"
  $out/$name '~[emulated]' || failed=1
done
exit $failed
