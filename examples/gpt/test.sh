#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER: a short run learns, writes its model, the same one again for the same seed, also when it is killed
# on the way and resumed, and writes text with it; every bad input ends in one sentence on standard error and status 1,
# without a model.
. "$(dirname "$0")/../common/test_functions.sh"

# A text that says what comes next.
i=0
while [ $i -lt 60 ]; do
  echo "the cat sat on the mat and the dog lay by the log"
  i=$((i + 1))
done > text

"$program" --data text --steps 120 --length 100 --temperature 0.1 --begin 'the ' --output one --log one.jsonl > log 2> progress ||
  wrong "a good run: $(cat progress)"
grep -q 'read back: equal' log || wrong 'the model was not read back'
grep -q 'the cat sat on the mat and the dog lay by the log' log || wrong "it has not learnt: $(cat log)"
loss=$(sed -n 's/^loss *\([0-9.]*\).*/\1/p' log)
awk "BEGIN { exit !($loss < 0.5) }" || wrong "loss $loss"
[ "$(sed 's/:[0-9.e-]*[,}]/;/g' one.jsonl | tr -d '\n')" = \
  '{"step";"train_loss";"val_loss":null}{"step";"train_loss";"val_loss":null}{"step";"train_loss";"val_loss";' ] ||
  wrong "--log: $(cat one.jsonl)"
tail -n 1 one.jsonl | grep -q "^{\"step\":120,.*:$(echo "$loss" | cut -c1-5)" || wrong "--log: $(cat one.jsonl)"
[ "$(ls one)" = model.safetensors ] || wrong "other files in the folder: $(ls one)"
"$program" --load one/model.safetensors --length 100 --temperature 0.1 --begin 'the ' > again 2> error || wrong '--load'
tail -n 3 log > end
tail -n 3 again | cmp - end || wrong 'the model that was loaded writes another text'
"$program" --data text --steps 5 --length 5 --output two > log 2> progress || wrong 'a second run'
"$program" --data text --steps 5 --length 5 --output three > log 2> progress || wrong 'a third run'
cmp two/model.safetensors three/model.safetensors || wrong 'the same seed, another model'
"$program" --data text --steps 5 --length 5 --seed 7 --output four > log 2> progress || wrong 'a fourth run'
! cmp -s two/model.safetensors four/model.safetensors || wrong 'another seed, the same model'
"$program" --help > help 2> error || wrong '--help'
grep -q -- '--steps' help || wrong '--help does not name --steps'

# Killed after its first checkpoint, and resumed.
"$program" --data text --steps 12 --length 5 --output whole > log 2> progress || wrong 'a whole run'
"$program" --data text --steps 12 --length 5 --checkpoint state --every 3 --output part > log 2> progress &
run=$!
waited=0
while [ ! -e state ] && [ $waited -lt 600 ]; do
  sleep 0.1
  waited=$((waited + 1))
done
kill -9 $run
wait $run 2> /dev/null
! grep -q '^trained' log || echo 'NOTE: the run was over before it was killed' >&2
"$program" --data text --steps 12 --length 5 --seed 9 --resume state --checkpoint state --output part > log 2> progress ||
  wrong "--resume: $(cat progress)"
grep -q '^resumed  state: \(3\|6\|9\|12\) steps done' log || wrong "resumed at another step: $(cat log)"
"$program" --data text --steps 12 --length 5 --resume state --output last > again 2> error || wrong 'resumed at the end'
grep -q '^resumed  state: 12 steps done' again || wrong "no checkpoint at the end: $(cat again)"
for run in part last; do
  "$program" --load $run/model.safetensors --length 5 > $run/text 2> error || wrong "--load $run"
  cmp whole/model.safetensors $run/model.safetensors || wrong "a run that was resumed ends elsewhere: $run"
done

: > empty
cat text text > longer
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
sed 's/cat/cow/; s/log/wog/' text > other
cp state good
head -c 100000 state > short_state
refused 'state does not fit this run: characters: "[0-9a-f.]*" in the file, "[0-9a-f.]*" in this run' \
  --data other --resume state --output bad
refused 'state does not fit this run: length: [0-9]* in the file, [0-9]* in this run' --data longer --resume state --output bad
refused 'short_state: .* ends behind the file' --data text --resume short_state --output bad
refused 'one/model.safetensors is no checkpoint' --data text --resume one/model.safetensors --output bad
refused 'No such file' --data text --resume none --output bad
refused 'cannot write no/state' --data text --checkpoint no/state --output bad
refused '--resume' --load one/model.safetensors --resume state
# The loss is no number in a later step: what was good stays.
refused 'train: the model is no longer of use after 13 steps; a smaller --lr may help; the state after 12 steps is in state' \
  --data text --steps 24 --lr 1e8 --lr-end 1e8 --resume state --checkpoint state --every 1 --output bad
cmp state good || wrong 'the last good state was lost'
refused 'run.txt ends neither in .csv nor in .jsonl' --data text --log run.txt --output bad
refused 'cannot write no/run.csv' --data text --log no/run.csv --output bad
refused 'made NaN of numbers, .*; the state after [0-9]* steps is in spoilt' \
  --data text --steps 24 --lr 1e12 --lr-end 1e12 --checkpoint spoilt --output bad
[ -s spoilt ] || wrong 'the state before NaN was not written'
# Without a checkpoint the model is kept alone.
stopped_by_nan last.safetensors last.safetensors --data text --steps 24 --lr 1e12 --lr-end 1e12
"$program" --load bad/last.safetensors --length 5 > log 2> error || wrong "the model before NaN: $(cat error)"
refused '--nonsense' --nonsense --output bad
refused 'cannot make the folder text/x' --data text --output text/x
refused 'broken' --load broken
refused 'No such file' --load none.safetensors
refused "the character 'Z' is not in one/model" --load one/model.safetensors --begin Z
refused '--data' --load one/model.safetensors --data text
[ $failures -eq 0 ]
