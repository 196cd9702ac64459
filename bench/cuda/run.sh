#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# run.sh [build|run]: benchmarks of a GPU. `build` compiles them with nvcc into build/bench/cuda, `run` runs what is
# there, compares with PyTorch where python3 has it with CUDA, prints a table and writes build/bench/cuda/results.json;
# without an argument both. ARCH (sm_90a) says for which generation, sm_90a with rows of kernels for warpgroups;
# PEER_SECONDS (240) how long PyTorch may take: rows that it has not come to stay alone.
set -eu
cd "$(dirname "$0")/../.."
out=build/bench/cuda
names='training gpt products memory llama'
mkdir -p $out
if [ "${1:-build}" = build ]; then
  command -v nvcc >/dev/null || { echo 'cuda/run.sh: no nvcc' >&2; exit 1; }
  flags='-std=c++20 -O3 -Iinclude -isystem build/deps/usr/include'
  host='-fopenmp -march=x86-64-v3' # results are compared with the CPU's, which takes longer than the rows
  arch=${ARCH:-sm_90a}
  case $arch in *a) flags="$flags -DDFDX_BENCH_WARPGROUPS" ;; esac
  for name in $names; do
    object=
    if [ -f bench/cuda/$name.cpp ]; then # what nvcc need not read
      object=$out/$name.o
      ${CXX:-g++} $flags $host -c -o $object bench/cuda/$name.cpp
    fi
    nvcc $flags -arch="$arch" --expt-relaxed-constexpr --extended-lambda -Xcompiler "$(echo $host | tr ' ' ,)" -o $out/$name \
      bench/cuda/$name.cu $object -lcublasLt
  done
  [ $# -eq 0 ] || exit 0
fi
rm -f $out/rows.jsonl
for name in $names; do
  [ -x $out/$name ] || { echo "cuda/run.sh: no $out/$name, run it with \`build\` first" >&2; exit 1; }
done
failed=0
for name in $names; do
  status=0
  $out/$name >>$out/rows.jsonl || status=$?
  [ $status -ne 77 ] || exit 77
  [ $status -eq 0 ] || { echo "cuda/run.sh: $name failed with status $status" >&2; failed=1; }
done
if python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  python3 bench/cuda/peers.py $out/rows.jsonl "${PEER_SECONDS:-240}" >$out/compared.jsonl && mv $out/compared.jsonl $out/rows.jsonl
else
  echo 'cuda/run.sh: no PyTorch with CUDA to compare with' >&2
fi
python3 bench/report.py $out/rows.jsonl $out/results.json
exit $failed
