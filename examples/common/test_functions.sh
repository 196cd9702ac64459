# SPDX-License-Identifier: BSL-1.0
# What the tests of the examples share; for `.`. Sets up the folder of its second argument.
set -u
program=$1
folder=$2
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder" || exit 1
failures=0
wrong() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# Words of some regularity, so that a test does not depend on the system's list.
two_hundred_words() {
  for first in ba be bo da de do ga ge go ka ke ko la le lo ma me mo na ne; do
    for last in na ne no ra re ro sa se so ta; do echo "$first$last"; done
  done
}

# refused TEXT ARGUMENTS...: status 1, one line on standard error that has TEXT, no model
refused() {
  text=$1
  shift
  rm -rf bad
  "$program" "$@" > log 2> error
  status=$?
  [ $status -eq 1 ] || wrong "status $status, not 1: $*"
  # The progress of a run that breaks off comes before.
  [ "$(grep -vc '^  \[' error)" -eq 1 ] || wrong "not one line: $* said: $(cat error)"
  grep -q -- "$text" error || wrong "'$text' is not in: $(cat error)"
  [ ! -e bad/model.safetensors ] || wrong "a model was written: $*"
}

# stopped_by_nan PLACE FILES ARGUMENTS...: one sentence says which step and which op made NaN; the model of the step before
# is in bad/PLACE, all of it numbers, and the folder holds these FILES alone.
stopped_by_nan() {
  place=bad/$1 files=$2
  shift 2
  refused "step [0-9]*: [a-z_0-9 ]*: made NaN of numbers, .*; the model is as it was after [0-9]* steps; a smaller --lr may help; the model is in $place\$" \
    "$@" --output bad
  steps=$(sed -n 's/.* step \([0-9]*\): .* after \([0-9]*\) steps; .*/\1 - \2/p' error)
  [ "$(expr ${steps:-0})" = 1 ] || wrong "the model is not that of the step before: $(cat error)"
  [ "$(echo $(ls bad))" = "$files" ] || wrong "the files are $(ls bad)"
  [ ! -d "$place" ] || place=$(echo "$place"/*model.safetensors)
  [ -s "$place" ] || wrong "no $place"
  ! od -An -v -t f4 "$place" | grep -q -e nan -e inf || wrong "not all of $place are numbers"
}
