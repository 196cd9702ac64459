#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# header_alone.sh LIMIT COMPILER FLAGS... - what every program compiles though it uses nothing of it: the functions of
# the headers that are no templates, and what these call. Fails above LIMIT kilobytes of unoptimised code. (g++ alone
# has the switch that keeps them.) What costs more than its own lines belongs in a template.
set -eu
limit=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo '#include <dfdx/dfdx.hpp>' > "$folder/header.cpp"
"$@" -O0 -fkeep-inline-functions -c -o "$folder/header.o" "$folder/header.cpp"
kilobytes=$(size "$folder/header.o" | awk 'NR == 2 { print int($1 / 1024) }')
echo "the header alone: $kilobytes KB of code, $limit are allowed"
[ "$kilobytes" -le "$limit" ]
