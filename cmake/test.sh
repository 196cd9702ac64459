#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh [CTEST ARGUMENTS]: installs what is missing, builds the preset dev, and runs every test. The lint, the
# headers, the examples and the consumer projects are tests like any other. Of other processors there is one small test;
# after `install_dependencies.sh cross` the workflows rvv and neon (CMakePresets.json) run all of them under qemu.
set -eu
cd "$(dirname "$0")/.."
jobs=$(nproc 2>/dev/null || echo 2)
sh cmake/install_dependencies.sh build
# What only the tests need is installed while they are built: a second compiler, one for other processors, an emulator.
sh cmake/install_dependencies.sh test &
cmake --preset dev
# One program that does not compile must not hide what the others say: ctest reports it as not run, and fails.
built=0
cmake --build build/dev -j "$jobs" -- -k 0 || built=1
[ $built -eq 0 ] || echo 'test.sh: not everything was built, see above' >&2
wait $! || built=1
found=$(cmake --preset dev 2>&1) || { # what has been installed
  echo "$found" >&2
  exit 1
}
tested=0
ctest --test-dir build/dev --output-on-failure -j "$jobs" "$@" || tested=1
exit $((built | tested))
