#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER: every bad input ends in one sentence on standard error and status 1, without a model; a short
# run on real pictures learns, writes its files, and the same model again for the same seed. Without the real pictures
# (Debian's dataset-fashion-mnist) the latter is skipped: status 77.
. "$(dirname "$0")/../common/test_pictures.sh"

# --- bad input ---------------------------------------------------------------------------------------------------
refuse_options
for name in short empty long other many few sides wrong packed; do data $name; done
head -c 5000 good/train-images-idx3-ubyte > short/train-images-idx3-ubyte
: > empty/t10k-labels-idx1-ubyte
printf 'x' >> long/train-labels-idx1-ubyte
echo 'no such thing at all' > other/train-images-idx3-ubyte
labels 100 > many/train-labels-idx1-ubyte
pictures 63 28 > few/train-images-idx3-ubyte && labels 63 > few/train-labels-idx1-ubyte
pictures 128 32 > sides/train-images-idx3-ubyte
{ head -c 17 good/train-labels-idx1-ubyte && printf '\013' && head -c 118 /dev/zero; } > wrong/train-labels-idx1-ubyte
for part in images-idx3 labels-idx1; do
  gzip packed/train-$part-ubyte
  size=$(wc -c < packed/train-$part-ubyte.gz)
  cp -r packed cut-$part && head -c $((size - 9)) packed/train-$part-ubyte.gz > cut-$part/train-$part-ubyte.gz
  cp -r packed spoilt-$part
  { head -c $((size - 6)) packed/train-$part-ubyte.gz && printf 'damage'; } > spoilt-$part/train-$part-ubyte.gz
  gunzip packed/train-$part-ubyte.gz
done
refused 'train-images-idx3-ubyte ends early' --data short --output bad
refused 't10k-labels-idx1-ubyte is empty' --data empty --output bad
refused 'has more bytes than its header says' --data long --output bad
refused 'train-images-idx3-ubyte is no IDX file' --data other --output bad
refused 'has 128 pictures, .* 100 labels' --data many --output bad
refused '63 pictures; 64 are needed' --data few --output bad
refused 'has u8 \[128, 32, 32\], not pictures u8 \[N, 28, 28\]' --data sides --output bad
refused 'train-labels-idx1-ubyte: label 11 at 9, there are 10 classes' --data wrong --output bad
refused 'train-images-idx3-ubyte.gz ends early' --data cut-images-idx3 --output bad
refused 'train-labels-idx1-ubyte.gz ends early' --data cut-labels-idx1 --output bad
refused 'train-images-idx3-ubyte.gz is damaged: incorrect' --data spoilt-images-idx3 --output bad
refused 'train-labels-idx1-ubyte.gz is damaged: incorrect' --data spoilt-labels-idx1 --output bad
stopped_by_nan last.safetensors 'last.safetensors log.csv log.jsonl' --data good --epochs 20 --lr 1e9
"$program" --load bad/last.safetensors --data good > log 2> error || wrong 'the model before NaN'

# --- real pictures -----------------------------------------------------------------------------------------------
if [ -e $real/train-images-idx3-ubyte.gz ]; then
  refused 'steps; a smaller --lr may help' --limit 1280 --lr 1e8 --output bad
  "$program" --limit 2000 --epochs 2 --output one > log 2> progress || wrong "a good run: $(cat progress)"
  for file in model.safetensors log.csv log.jsonl loss.svg confusion.svg filters.svg; do
    [ -s "one/$file" ] || wrong "no $file"
  done
  [ "$(ls one | wc -l)" -eq 6 ] || wrong "other files in the folder: $(ls one)"
  grep -q 'read back: equal' log || wrong 'the model was not read back'
  tail -n 1 progress | grep -q 'loss .* test accuracy 0' || wrong "progress: $(tail -n 1 progress)"
  accuracy=$(sed -n 's/^test *accuracy \([0-9.]*\),.*/\1/p' log)
  awk "BEGIN { exit !($accuracy > 0.7) }" || wrong "accuracy $accuracy"
  [ "$(wc -l < one/log.csv)" -eq 3 ] || wrong "log.csv: $(cat one/log.csv)"
  [ "$(wc -l < one/log.jsonl)" -eq 2 ] || wrong "log.jsonl: $(cat one/log.jsonl)"
  # The model that is read finds what the one that was trained found.
  "$program" --limit 2000 --load one/model.safetensors > again 2> error || wrong "--load: $(cat error)"
  sed -n '/^is/,/^test/p' log > table
  sed -n '/^is/,/^test/p' again | cmp - table || wrong "the model that was loaded differs: $(cat again)"
  same_again
fi
finish
