#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test_static_sizes.sh PROGRAM MODEL: the model of static sizes tells the story that llama2.c does.
set -u
if ! [ -e "$2" ]; then
  echo "SKIPPED: no $2" >&2
  exit 77
fi
"$1" "$2" > static_sizes.log || exit 1
grep -q '^[0-9]* bytes for a token' static_sizes.log || exit 1
grep -qF 'there was a little girl named Lily. She loved to play outside in the park.' static_sizes.log
