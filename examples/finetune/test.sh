#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER DATA: a small published model learns a text better, whole or by factors beside it, what is
# saved is read back, and bad input is refused.
case $3 in /*) data=$3 ;; *) data=$(pwd)/$3 ;; esac
. "$(dirname "$0")/../common/test_functions.sh"

"$program" --help > log 2> error || wrong '--help'
for option in --data --tokenizer --output --lora --steps --batch --length --lr --warmup --clip --seed --log; do
  grep -q -- "$option" log || wrong "--help does not name $option"
done
awk 'BEGIN {
  split("captain sailor pilot cook fisher", who); split("rope anchor lantern barrel compass", what)
  for (i = 0; i < 400; ++i)
    printf "The %s of the ship took the %s at %d bells and wrote it down. ", who[i % 5 + 1], what[int(i / 5) % 5 + 1], i % 8
}' > text
echo 'Once upon a time' > short
refused 'none: No such file' none --data text --output bad
refused '--data is required' none --output bad
refused '--lora' none --data text --lora 0 --output bad
refused '--lora-alpha' none --data text --lora-alpha 2 --output bad
refused '--lr' none --data text --lr 0 --output bad

models=$data/llama
if ! [ -d "$models" ]; then
  echo "SKIPPED: no published models in $data" >&2
  [ $failures -eq 0 ] || exit 1
  exit 77
fi

# loss WHEN: of the validation that the log tells
loss() { sed -n "s/^$1 .*validation loss \([0-9.]*\).*/\1/p" log; }
# learns BY OPTIONS...: the loss falls by so much, and is the same of what is read back
learns() {
  by=$1
  shift
  "$program" "$models/hf" --tokenizer "$models/tok512.bin" --data text --length 64 --batch 4 "$@" > log 2> progress ||
    wrong "$*: $(cat progress)"
  awk "BEGIN { exit !($(loss after) < $(loss before) - $by) }" || wrong "it has not learnt: $(cat log)"
  [ "$(loss after)" = "$(loss wrote)" ] || wrong "read back it is another: $(cat log)"
}
learns 1.5 --steps 40 --lr 2e-3 --output whole --log whole.csv
[ "$(echo $(ls whole))" = 'config.json loss.svg model.safetensors tokenizer.bin' ] || wrong "files: $(ls whole)"
cmp "$models/tok512.bin" whole/tokenizer.bin || wrong 'the tokenizer is not that of the model'
[ "$(sed 1q whole.csv)" = step,train_loss,validation_loss ] || wrong "--log: $(cat whole.csv)"
[ "$(wc -l < whole.csv)" -eq 7 ] || wrong "--log: $(cat whole.csv)"
for run in once again; do
  "$program" "$models/hf" --tokenizer "$models/tok512.bin" --data text --length 64 --batch 4 --steps 4 --output $run \
    > log 2> progress || wrong "a short run: $(cat progress)"
done
cmp once/model.safetensors again/model.safetensors || wrong 'the same seed, another model'
learns 0.5 --steps 40 --lr 1e-2 --lora 8 --lora-targets q_proj,v_proj,up_proj,down_proj --output adapter
[ "$(echo $(ls adapter))" = 'adapter_config.json adapter_model.safetensors loss.svg' ] || wrong "$(ls adapter)"
# What was trained goes on to be trained, with the tokenizer that is beside it.
"$program" whole --data text --length 64 --steps 1 --output more > log 2> progress ||
  wrong "a model of its own: $(cat progress)"
awk "BEGIN { exit !($(loss before) < 3) }" || wrong "a model of its own: $(cat log)"

refused 'short has .* tokens; pieces of 256 need more' "$models/hf" --tokenizer "$models/tok512.bin" --data short \
  --output bad
refused 'cannot read nowhere: No such file' "$models/hf" --tokenizer "$models/tok512.bin" --data nowhere --output bad
refused 'tokens, the model has 512 positions' "$models/hf" --tokenizer "$models/tok512.bin" --data text --length 513 \
  --output bad
refused 'no projection that is called x_proj' "$models/hf" --tokenizer "$models/tok512.bin" --data text --lora 2 \
  --lora-targets x_proj --output bad
for kind in '--lora 4' ''; do
  stopped_by_nan last last "$models/hf" --tokenizer "$models/tok512.bin" --data text --length 64 --lr 1e9 $kind
done
# It can be read, with the tokenizer that is beside it, whatever it is worth.
"$program" bad/last --data text --length 64 --steps 1 --output more > log 2> progress
grep -q '^before' log || wrong "the model before NaN: $(cat progress)"
[ $failures -eq 0 ]
