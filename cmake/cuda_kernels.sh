#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# cuda_kernels.sh COMMAND...: runs nvcc with `-Xptxas -v`, and fails unless it made kernels, none of which uses local
# memory: a stack frame, or registers spilt to it, or waits for each of its products by warpgroups, which ptxas sees to
# where it does not understand when they are made. sin, cos and tan alone have a frame: CUDA's own functions reduce
# large arguments in one.
report=$("$@" -Xptxas -v 2>&1) || { printf '%s\n' "$report" | grep -v "^ptxas info"; exit 1; }
printf '%s\n' "$report" | awk '
  /Compiling entry function/ { name = $7; n++ }
  /bytes stack frame/ {
    own = name ~ /AnyMapINS.*2op3(sin|cos|tan)E/ && $5 + 0 == 0 && $9 + 0 == 0
    if (own) next
    if ($1 + 0 != 0 || $5 + 0 != 0 || $9 + 0 != 0) { print "local memory: " name ": " $0; bad++ }
  }
  /instructions are serialized/ { print; waits++ }
  /Used [0-9]+ registers/ { for (i = 1; i < NF; ++i) if ($i == "Used" && $(i + 1) + 0 > most) most = $(i + 1) + 0 }
  END { print n + 0 " kernels, " bad + 0 " with local memory, " most + 0 " registers at most"; exit n == 0 || bad + waits != 0 }'
