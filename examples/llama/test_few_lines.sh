#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test_few_lines.sh PROGRAM MODEL: the few lines of README.md run where there is a published model.
set -u
if ! [ -e "$2" ]; then
  echo "SKIPPED: no $2" >&2
  exit 77
fi
"$1" "$2" > few_lines.log || exit 1
grep -q 'loss of a sentence: [0-9]' few_lines.log
