#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER: a short run writes its files, the same ones again for the same seed; every bad input ends in one
# sentence on standard error and status 1, without a model.
. "$(dirname "$0")/../common/test_functions.sh"

two_hundred_words > list

"$program" --data list --steps 400 --output one > log 2> progress || wrong "a good run: $(cat progress)"
for file in model.safetensors loss.svg activations.svg; do [ -s "one/$file" ] || wrong "no $file"; done
grep -q 'read back: equal' log || wrong 'the model was not read back'
[ "$(ls one | wc -l)" -eq 3 ] || wrong "other files in the folder: $(ls one)"
"$program" --data list --steps 400 --output two --log two.csv > log 2> progress || wrong 'a second run'
awk -F, 'NR == 1 { good = $0 == "step,train_loss,dev_loss" }
         NR > 1 { good = good && $1 > last && $2 > 0 && $3 > 0 && $2 < 3.5; last = $1 }
         END { exit !(good && NR > 10 && last == 400) }' two.csv || wrong "--log: $(cat two.csv)"
cmp one/model.safetensors two/model.safetensors || wrong 'the same seed, another model'
"$program" --data list --steps 400 --seed 7 --output three > log 2> progress || wrong 'a third run'
! cmp -s one/model.safetensors three/model.safetensors || wrong 'another seed, the same model'

# The model that is read makes up the words that the one that was trained did.
"$program" --data list --steps 400 --output one > log 2> progress || wrong 'a fourth run'
sed -n '/^twenty new/,/^$/p' log | grep . > made
"$program" --load one/model.safetensors > loaded 2> error || wrong "--load: $(cat error)"
cmp made loaded || wrong "the model that was loaded makes up others: $(cat loaded)"

# loss_of ROW COLUMN: a figure of the table of losses in the log
loss_of() { awk -v row="$1" -v column="$2" '$1 " " $2 == row { print $(column + 2) }' log; }
# What products are computed in changes the model, and hardly how good it is.
exact=$(loss_of 'this model' 2)
for precision in bf16 f16; do
  "$program" --data list --steps 400 --precision $precision --output $precision > log 2> progress ||
    wrong "$precision: $(cat progress)"
  awk "BEGIN { d = $(loss_of 'this model' 2) - $exact; exit !(d < 0.02 && d > -0.02) }" || wrong "$precision: $(cat log)"
  ! cmp -s one/model.safetensors $precision/model.safetensors || wrong "$precision: the model of f32"
done
for model in batchnorm wavenet; do
  "$program" --data list --steps 400 --model $model --output $model > log 2> progress || wrong "$model: $(cat progress)"
  for file in model.safetensors loss.svg activations.svg; do [ -s "$model/$file" ] || wrong "$model: no $file"; done
  grep -q "model    $model, " log || wrong "$model: $(cat log)"
  grep -q 'read back: equal' log || wrong "$model was not read back"
  grep -aq 'norm.running_var' $model/model.safetensors || wrong "$model: no running statistics in the file"
  # Training moves the running statistics: no variances are left at 1, and no means at 0.
  ! LC_ALL=C grep -aqP '(\x00\x00\x80\x3f){68}|\x00{272}' $model/model.safetensors ||
    wrong "$model: running statistics as at the beginning"
  awk "BEGIN { exit !($(loss_of 'this model' 2) < $(loss_of 'bigram model' 2)) }" || wrong "$model: $(cat log)"
  "$program" --data list --steps 400 --model $model --output again > log 2> progress || wrong "$model: a second run"
  cmp $model/model.safetensors again/model.safetensors || wrong "$model: the same seed, another model"
done
grep -q '22397 parameters' log || wrong "wavenet: not the size that was published: $(cat log)"
"$program" --help > help 2> error || wrong '--help'
grep -q -- '--steps' help || wrong '--help does not name --steps'

: > empty
printf 'onlyone\n' > oneline
head -c 300 list > binary && printf '\000\001\002' >> binary
{ cat list; echo 'x-ray'; } > hyphen
{ cat list; printf 'caf\303\251\n'; } > accent
printf 'a\nb\nc\n' > few
refused 'cannot read none: No such file' --data none --output bad
refused 'Is a directory' --data . --output bad
refused 'empty is empty' --data empty --output bad
refused 'fewer than 2 lines' --data oneline --output bad
refused 'not a text file (byte 0x00' --data binary --output bad
refused "hyphen:201: 'x-ray' has characters other than" --data hyphen --output bad
refused 'accent:201: .* has characters other than' --data accent --output bad
refused 'few has 3 words' --data few --output bad
refused '--steps' --data list --steps 0 --output bad
refused '--steps' --data list --steps many --output bad
refused '--lr: a number from 1e-9 to 1e38 required, got nan' --data list --lr nan --output bad
refused '--lr-end: a number .* got 1e39' --data list --lr-end 1e39 --output bad
refused '--precision: f32, bf16 or f16 required, got f8' --data list --precision f8 --output bad
refused 'after [0-9]* steps; a smaller --lr may help; the model is in bad/last.safetensors$' --data list --steps 2000 --lr 1e8 --output bad
for model in batchnorm wavenet; do
  stopped_by_nan last.safetensors last.safetensors --data list --steps 2000 --lr 1e30 --model $model
  "$program" --load bad/last.safetensors --model $model > log 2> error || wrong "the model before NaN: $(cat error)"
done
# What 16 bits cannot hold is made by no op in f32, and without a normalization the loss grows before anything is NaN.
refused 'step 2: the loss is -*nan; the model is as it was after 1 steps; .*; the model is in bad/last.safetensors$' \
  --data list --steps 2000 --lr 1e9 --precision f16 --output bad
"$program" --load bad/last.safetensors > log 2> error || wrong "the model before NaN: $(cat error)"
refused '--model: gru not in {mlp,batchnorm,wavenet}' --data list --model gru --output bad
refused 'run.txt ends neither in .csv nor in .jsonl' --data list --log run.txt --output bad
refused 'cannot write no/run.csv' --data list --log no/run.csv --output bad
refused 'No such file' --load none.safetensors
refused 'one/model.safetensors' --load one/model.safetensors --model wavenet
refused '--nonsense' --nonsense --output bad
refused 'cannot make the folder list/x' --data list --output list/x
refused 'cannot make the folder' --data list --output list
[ $failures -eq 0 ]
