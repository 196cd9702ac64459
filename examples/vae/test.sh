#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER: bad input ends in one sentence on standard error and status 1, without a model; a short run on
# real pictures learns, writes its files, and the same model again for the same seed. Without the real pictures (Debian's
# dataset-fashion-mnist) the latter is skipped: status 77.
. "$(dirname "$0")/../common/test_pictures.sh"
refuse_options
stopped_by_nan last.safetensors 'last.safetensors log.csv' --data good --lr 1e9
"$program" --load bad/last.safetensors --data good --output again > log 2> error ||
  wrong "the model before NaN: $(cat error)"
if [ -e $real/train-images-idx3-ubyte.gz ]; then
  refused 'steps; a smaller --lr may help' --limit 1280 --lr 1e8 --output bad
  "$program" --limit 6000 --epochs 3 --output one > log 2> progress || wrong "a good run: $(cat progress)"
  for file in model.safetensors log.csv loss.svg reconstructions.png samples.png; do
    [ -s "one/$file" ] || wrong "no $file"
  done
  [ "$(ls one | wc -l)" -eq 5 ] || wrong "other files in the folder: $(ls one)"
  # ln 2 for each point, 543 in all, without having learnt anything.
  loss=$(sed -n 's/^test *loss \([0-9.]*\).*/\1/p' log)
  awk "BEGIN { exit !($loss < 320) }" || wrong "loss $loss"
  "$program" --limit 6000 --load one/model.safetensors --output again > loaded 2> error || wrong "--load: $(cat error)"
  grep -q "^test *loss $loss " loaded || wrong "the model that was loaded differs: $(cat loaded)"
  for file in reconstructions samples; do
    cmp one/$file.png again/$file.png || wrong "the model that was loaded draws other $file"
  done
  same_again
fi
finish
