#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM: says what it takes, and what is wrong with a folder.
set -u
program=$1
"$program" --help | grep -q -- --guidance || { echo 'no help'; exit 1; }
said=$("$program" /nowhere --prompt 'a cat' 2>&1) && { echo 'a model from nowhere'; exit 1; }
echo "$said" | grep -q '^draw: .*/nowhere' || { echo "unclear: $said"; exit 1; }
