#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# demo.sh [ARGUMENTS]: installs what is missing, builds examples/words, and runs it with the arguments.
set -eu
cd "$(dirname "$0")/.."
sh cmake/install_dependencies.sh demo
mkdir -p build
log=build/demo.log
if ! { cmake --preset release -DDFDX_TESTS=OFF -DDFDX_BENCH=OFF -DDFDX_LINT=OFF &&
  cmake --build build/release --target words; } >$log 2>&1; then
  cat $log >&2
  exit 1
fi
exec build/release/examples/words/words "$@"
