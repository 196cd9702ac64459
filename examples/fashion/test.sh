#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER: every bad input ends in one sentence on standard error and status 1, without a model; a short
# run on real pictures learns, writes its files, and the same model again for the same seed. Without the real pictures
# (Debian's dataset-fashion-mnist) the latter is skipped: status 77.
set -u
fashion=$1
folder=$2
real=/usr/share/datasets/fashion-mnist
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder" || exit 1
failures=0
wrong() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# --- bad input ---------------------------------------------------------------------------------------------------
# pictures N SIDE, labels N: 64 to 255 of them, all black and all of class 0
byte() { printf "\\$(printf %03o "$1")"; }
pictures() {
  printf '\000\000\010\003\000\000\000'
  byte "$1"
  for axis in 1 2; do printf '\000\000\000' && byte "$2"; done
  head -c $(($1 * $2 * $2)) /dev/zero
}
labels() {
  printf '\000\000\010\001\000\000\000'
  byte "$1"
  head -c "$1" /dev/zero
}
# data FOLDER: good files, of which the caller spoils one
data() {
  mkdir -p "$1"
  for part in train t10k; do
    pictures 128 28 > "$1/$part-images-idx3-ubyte"
    labels 128 > "$1/$part-labels-idx1-ubyte"
  done
}
# refused TEXT ARGUMENTS...: status 1, one line on standard error that has TEXT
refused() {
  text=$1
  shift
  rm -rf bad
  "$fashion" "$@" > log 2> error
  status=$?
  [ $status -eq 1 ] || wrong "status $status, not 1: $*"
  # The progress of a run that breaks off comes before.
  [ "$(grep -vc '^  \[' error)" -eq 1 ] || wrong "not one line: $* said: $(cat error)"
  grep -q -- "$text" error || wrong "'$text' is not in: $(cat error)"
  [ ! -e bad/model.safetensors ] || wrong "a model was written: $*"
}
data good
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
head -c 300 /dev/zero > zeros.safetensors
refused 'cannot read none/train-images-idx3-ubyte.gz: No such file' --data none --output bad
refused 'train-images-idx3-ubyte ends early' --data short --output bad
refused 't10k-labels-idx1-ubyte is empty' --data empty --output bad
refused 'has more bytes than its header says' --data long --output bad
refused 'train-images-idx3-ubyte is no IDX file' --data other --output bad
refused 'has 128 pictures, .* 100 labels' --data many --output bad
refused '63 pictures do not fill a batch of 64' --data few --output bad
refused 'has u8 \[128, 32, 32\], not pictures u8 \[N, 28, 28\]' --data sides --output bad
refused 'train-labels-idx1-ubyte: label 11 at 9, there are 10 classes' --data wrong --output bad
refused 'train-images-idx3-ubyte.gz ends early' --data cut-images-idx3 --output bad
refused 'train-labels-idx1-ubyte.gz ends early' --data cut-labels-idx1 --output bad
refused 'train-images-idx3-ubyte.gz is damaged: incorrect' --data spoilt-images-idx3 --output bad
refused 'train-labels-idx1-ubyte.gz is damaged: incorrect' --data spoilt-labels-idx1 --output bad
refused '--epochs' --data good --epochs 0 --output bad
refused '--epochs' --data good --epochs many --output bad
refused '--lr' --data good --lr nan --output bad
refused '--limit' --data good --limit -5 --output bad
refused '--nonsense' --nonsense --output bad
refused 'cannot make the folder error/x' --data good --output error/x
refused 'No such file' --load none.safetensors
refused 'zeros.safetensors' --load zeros.safetensors --data good
"$fashion" --help > help 2> error || wrong '--help'
grep -q -- '--epochs' help || wrong '--help does not name --epochs'

# --- real pictures -----------------------------------------------------------------------------------------------
if [ -e $real/train-images-idx3-ubyte.gz ]; then
  refused 'steps; a smaller --lr may help' --limit 1280 --lr 1e8 --output bad
  "$fashion" --limit 2000 --epochs 2 --output one > log 2> progress || wrong "a good run: $(cat progress)"
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
  "$fashion" --limit 2000 --load one/model.safetensors > again 2> error || wrong "--load: $(cat error)"
  sed -n '/^is/,/^test/p' log > table
  sed -n '/^is/,/^test/p' again | cmp - table || wrong "the model that was loaded differs: $(cat again)"
  "$fashion" --limit 320 --epochs 1 --output two > log 2> progress || wrong 'a second run'
  "$fashion" --limit 320 --epochs 1 --output three > log 2> progress || wrong 'a third run'
  cmp two/model.safetensors three/model.safetensors || wrong 'the same seed, another model'
  "$fashion" --limit 320 --epochs 1 --seed 7 --output four > log 2> progress || wrong 'a fourth run'
  ! cmp -s two/model.safetensors four/model.safetensors || wrong 'another seed, the same model'
fi
[ $failures -eq 0 ] || exit 1
if [ ! -e $real/train-images-idx3-ubyte.gz ]; then
  echo "SKIPPED: no $real; install dataset-fashion-mnist (cmake/install_dependencies.sh)" >&2
  exit 77
fi
