#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER: bad input ends in one sentence on standard error and status 1, without a model; a short run on
# real pictures learns more than the mean picture, writes its files, and the same model again for the same seed. Without
# the real pictures (Debian's dataset-fashion-mnist) the latter is skipped: status 77.
. "$(dirname "$0")/../common/test_pictures.sh"
refuse_options
if [ -e $real/train-images-idx3-ubyte.gz ]; then
  "$program" --limit 3000 --epochs 3 --output one > log 2> progress || wrong "a good run: $(cat progress)"
  for file in model.safetensors log.csv loss.svg reconstructions.png; do [ -s "one/$file" ] || wrong "no $file"; done
  [ "$(ls one | wc -l)" -eq 4 ] || wrong "other files in the folder: $(ls one)"
  loss=$(sed -n 's/^test *loss \([0-9.]*\).*/\1/p' log)
  mean=$(sed -n 's/^compare *\([0-9.]*\).*/\1/p' log)
  awk "BEGIN { exit !($loss < 0.5 * $mean) }" || wrong "loss $loss, of the mean picture $mean"
  "$program" --limit 3000 --load one/model.safetensors --output again > loaded 2> error || wrong "--load: $(cat error)"
  grep -q "^test *loss $loss " loaded || wrong "the model that was loaded differs: $(cat loaded)"
  cmp one/reconstructions.png again/reconstructions.png || wrong 'the model that was loaded draws other pictures'
  same_again
fi
finish
