#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# build.sh PROGRAM.wasm [COMPILER FLAG...]: compiles names.cpp for WebAssembly with SIMD, as a program for WASI (a browser or
# node gives it files and arguments). Debian's C++ library for it has no exceptions. The stack lies before all else, so
# that to run out of it ends the program and overwrites nothing.
set -eu
program=$1
shift
here=$(dirname "$0")
top=$here/../..
exec clang++-19 --target=wasm32-wasi -msimd128 -fno-exceptions -std=c++20 -O2 \
  -Wl,--stack-first -Wl,-z,stack-size=1048576 "-I$top/include" -isystem "$top/build/deps/usr/include" "$@" \
  -idirafter /usr/include "$here/names.cpp" -o "$program"
