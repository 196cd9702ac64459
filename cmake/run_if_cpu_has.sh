#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# run_if_cpu_has.sh FLAG... -- COMMAND...: exit status 77 (ctest: skipped) where /proc/cpuinfo lacks a flag.
while [ "$1" != -- ]; do
  grep -m1 '^flags' /proc/cpuinfo | grep -qw "$1" || {
    echo "skipped: this processor has no $1"
    exit 77
  }
  shift
done
shift
exec "$@"
