#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER: a short run learns, writes its model, the same one again for the same seed, and writes text with
# it; every bad input ends in one sentence on standard error and status 1, without a model.
set -u
gpt=$1
folder=$2
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder" || exit 1
failures=0
wrong() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# A text that says what comes next.
i=0
while [ $i -lt 60 ]; do
  echo "the cat sat on the mat and the dog lay by the log"
  i=$((i + 1))
done > text

"$gpt" --data text --steps 120 --length 100 --temperature 0.1 --begin 'the ' --output one > log 2> progress ||
  wrong "a good run: $(cat progress)"
grep -q 'read back: equal' log || wrong 'the model was not read back'
grep -q 'the cat sat on the mat and the dog lay by the log' log || wrong "it has not learnt: $(cat log)"
loss=$(sed -n 's/^loss *\([0-9.]*\).*/\1/p' log)
awk "BEGIN { exit !($loss < 0.5) }" || wrong "loss $loss"
[ "$(ls one)" = model.safetensors ] || wrong "other files in the folder: $(ls one)"
"$gpt" --load one/model.safetensors --length 100 --temperature 0.1 --begin 'the ' > again 2> error || wrong '--load'
tail -n 3 log > end
tail -n 3 again | cmp - end || wrong 'the model that was loaded writes another text'
"$gpt" --data text --steps 5 --length 5 --output two > log 2> progress || wrong 'a second run'
"$gpt" --data text --steps 5 --length 5 --output three > log 2> progress || wrong 'a third run'
cmp two/model.safetensors three/model.safetensors || wrong 'the same seed, another model'
"$gpt" --data text --steps 5 --length 5 --seed 7 --output four > log 2> progress || wrong 'a fourth run'
! cmp -s two/model.safetensors four/model.safetensors || wrong 'another seed, the same model'
"$gpt" --help > help 2> error || wrong '--help'
grep -q -- '--steps' help || wrong '--help does not name --steps'

# refused TEXT ARGUMENTS...: status 1, one line on standard error that has TEXT
refused() {
  said=$1
  shift
  rm -rf bad
  "$gpt" "$@" > log 2> error
  status=$?
  [ $status -eq 1 ] || wrong "status $status, not 1: $*"
  [ "$(wc -l < error)" -eq 1 ] || wrong "not one line: $* said: $(cat error)"
  grep -q -- "$said" error || wrong "'$said' is not in: $(cat error)"
  [ ! -e bad/model.safetensors ] || wrong "a model was written: $*"
}
: > empty
head -c 1299 text > short
head -c 2000 text > binary && printf '\000\001\002' >> binary
{
  cat text
  i=128
  while [ $i -lt 256 ]; do
    printf "\\$(printf %o $i)"
    i=$((i + 1))
  done
} > many
head -c 1000 one/model.safetensors > broken
refused 'cannot read none: No such file' --data none --output bad
refused 'Is a directory' --data . --output bad
refused 'empty is empty' --data empty --output bad
refused 'short has 1299 characters; at least 1300 are needed' --data short --output bad
refused 'not a text file (byte 0x00' --data binary --output bad
refused 'many has [0-9]* different characters; the model knows 128' --data many --output bad
refused "the character 'Z' is not in text" --data text --begin Z --output bad
refused '--steps' --data text --steps 0 --output bad
refused '--steps' --data text --steps many --output bad
refused '--lr' --data text --lr nan --output bad
refused '--temperature' --data text --temperature 0 --output bad
refused 'steps; a smaller --lr may help' --data text --steps 200 --lr 1e8 --output bad
refused '--nonsense' --nonsense --output bad
refused 'cannot make the folder text/x' --data text --output text/x
refused 'broken' --load broken
refused 'No such file' --load none.safetensors
refused "the character 'Z' is not in one/model" --load one/model.safetensors --begin Z
refused '--data' --load one/model.safetensors --data text
[ $failures -eq 0 ]
