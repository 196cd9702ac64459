#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh [--full] [CTEST ARGUMENTS]: installs what is missing, builds the preset dev, and runs its tests; --full with
# those that take long and break seldom (slow_tests.cmake). The lint, the headers, the examples and the consumer projects
# are tests like any other. Of other processors there is one small test; after `install_dependencies.sh cross` the
# workflows rvv and neon (CMakePresets.json) run all of them under qemu.
set -eu
cd "$(dirname "$0")/.."
preset=dev
if [ "${1:-}" = --full ]; then
  preset=full
  shift
fi
jobs=$(nproc 2>/dev/null || echo 2)
sh cmake/install_dependencies.sh build
# What only the tests need is installed while they are built: a second compiler, one for other processors, an emulator.
sh cmake/install_dependencies.sh test &
cmake --preset $preset
# One program that does not compile must not hide what the others say: ctest reports it as not run, and fails.
built=0
cmake --build build/dev -j "$jobs" -- -k 0 || built=1
[ $built -eq 0 ] || echo 'test.sh: not everything was built, see above' >&2
wait $! || built=1
found=$(cmake --preset $preset 2>&1) || { # what has been installed
  echo "$found" >&2
  exit 1
}
tested=0
ctest --test-dir build/dev --output-on-failure -j "$jobs" "$@" || tested=1
exit $((built | tested))
