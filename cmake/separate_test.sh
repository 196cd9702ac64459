#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# separate_test.sh NM OBJECT... - objects of files that were compiled with DFDX_SEPARATE have none of the functions that
# tape/separate.hpp declares, but call them. A declaration that no longer names its function would only cost time.
set -eu
nm=$1
shift
op='dfdx::op::[a-z0-9_]+'
declared="run_now<$op, (void|float|double)>|apply_to_dense<$op, (float|double)>|tape_rule<$op, (void|float|double)>"
declared="$declared|reduce_in_memory<$op, (void|float|double)>|(copy_values|(uniform|normal|integers)_array)<0>"
declared="$declared|(convert|copy_transposed)<0>|Array::backward<0>"
symbols=$("$nm" -C "$@" | grep -E "[ :]($declared)\(") || symbols=''
again=$(echo "$symbols" | grep -E '^[0-9a-f]+ ' | sort -k 3 -u) || again=''
[ -z "$again" ] || { echo "separate_test: compiled again:" && echo "$again" && exit 1; }
for name in run_now apply_to_dense tape_rule reduce_in_memory copy_transposed; do
  echo "$symbols" | grep -q " U .*$name<" || { echo "separate_test: nobody calls $name" && exit 1; }
done
echo "$symbols" | sort -u | wc -l
