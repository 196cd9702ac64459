#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# run.sh [NAME...]: builds the named benchmarks (those of `names` below; all without a name) in release below
# build/bench, runs them, prints one table and writes it to build/bench/results.json and, with charts, report.html.
# peers.sh installs what they compare with. On their own: `run.sh rvv` counts instructions on RISC-V vectors,
# `run.sh cuda` measures a GPU.
set -eu
cd "$(dirname "$0")/.."
names='maths ad tape transforms words fashion mlp gpt gemm conv llama matrices factorise elementwise normalise
  attention movement inference scaling threads compile'
[ $# -gt 0 ] || set -- $names
if [ "$1" = rvv ]; then
  sh cmake/install_dependencies.sh cross
  exec python3 bench/rvv/count.py build/bench/rvv -Iinclude -isystem build/deps/usr/include
fi
[ "$1" != cuda ] || exec sh bench/cuda/run.sh
targets='bench_roof'
for name in "$@"; do
  case " $(echo $names) " in
    *" $name "*) [ "$name" = compile ] || targets="$targets bench_$name" ;;
    *) echo "run.sh: no benchmark $name; there are $(echo $names)" >&2 && exit 1 ;;
  esac
done
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# Debian's OpenBLAS does not know newer processors and would leave AVX-512 unused.
! grep -qs avx512vl /proc/cpuinfo || export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-SkylakeX}"

sh cmake/install_dependencies.sh demo
mkdir -p build/bench
log=build/bench/build.log
if ! { cmake --preset release -B build/bench -DDFDX_TESTS=OFF -DDFDX_EXAMPLES=OFF -DDFDX_BENCH=ON -DDFDX_LINT=OFF &&
  cmake --build build/bench --target $targets; } >$log 2>&1; then
  grep -m 5 -i error $log >&2 || tail -n 5 $log >&2
  echo "run.sh: it does not build, see $log" >&2
  exit 1
fi

rows=build/bench/rows.jsonl
build/bench/bench/bench_roof > $rows
failed=0
for name in "$@"; do
  echo "run.sh: $name ..." >&2
  case $name in
    compile) python3 bench/compile/compile.py build/bench/bench/compile_flags.txt >>$rows || failed=1 ;;
    *) build/bench/bench/bench_"$name" >>$rows || failed=1 ;;
  esac
done
python3 bench/report.py $rows build/bench/results.json
python=python3 # Debian's has Debian's matplotlib, which another one before it on the path may lack
python3 -c 'import matplotlib' 2>/dev/null || [ ! -x /usr/bin/python3 ] || python=/usr/bin/python3
$python bench/charts.py build/bench/results.json build/bench/report.html
echo "run.sh: charts in build/bench/report.html" >&2
[ $failed -eq 0 ] || echo 'run.sh: a benchmark failed, see above' >&2
exit $failed
