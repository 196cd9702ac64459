#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER: bad input ends in one sentence on standard error and status 1, without a model; short runs on
# real pictures, digits of a table and clothes of IDX files, learn more than what they are compared with, write their
# files, and the same model again for the same seed. Without the real pictures (cmake/install_dependencies.sh) these are
# skipped; without those of Debian's dataset-fashion-mnist the status is 77.
. "$(dirname "$0")/../common/test_pictures.sh"
refuse_options

# table ROWS POINTS: dots that wander
table() {
  awk -v rows="$1" -v points="$2" 'BEGIN {
    for (i = 0; i < rows; ++i) {
      for (k = 0; k < points; ++k) printf "%d,", (k == i * 7 % points) * 16
      print i % 3
    }
  }'
}
table 300 64 > dots.csv
table 300 63 > columns.csv
table 84 64 > few.csv
{ cat dots.csv; sed -n '1s/16/-1/p' dots.csv; } > negative.csv
{ cat dots.csv; sed -n '1s/16/nan/p' dots.csv; } > nan.csv
{ cat dots.csv; sed -n '1s/16/x/p' dots.csv; } > letter.csv
sed 's/16/0/' dots.csv > black.csv
gzip -c dots.csv | head -c 300 > short.csv.gz
refused 'cannot read none.csv: No such file' --data none.csv --output bad
refused 'columns.csv has 64 columns; .* are 65, or 785' --data columns.csv --output bad
refused 'few.csv: 63 pictures; 64 are needed' --data few.csv --output bad
refused 'negative.csv:301: -1.0* is no brightness' --data negative.csv --output bad
refused 'nan.csv:301: -*nan is no brightness' --data nan.csv --output bad
refused "letter.csv:301: 'x' in column 0 is no number" --data letter.csv --output bad
refused 'black.csv: all pictures are black' --data black.csv --output bad
refused 'short.csv.gz' --data short.csv.gz --output bad

# learns M L FILES ARGUMENTS...: the loss is below M times that of the mean picture and L times that of a linear model;
# these files are written, and the model that is read back does the same.
learns() {
  mean_share=$1 linear_share=$2 files=$3
  shift 3
  rm -rf one again
  "$program" "$@" --output one > log 2> progress || wrong "a good run: $(cat progress)"
  [ "$(echo $(ls one))" = "$files" ] || wrong "the files are $(ls one)"
  for file in one/*; do [ -s "$file" ] || wrong "$file is empty"; done
  loss=$(sed -n 's/^test *loss \([0-9.]*\).*/\1/p' log)
  mean=$(sed -n 's/^compare *\([0-9.]*\).*/\1/p' log)
  linear=$(sed -n 's/^compare .* \([0-9.]*\) by.*/\1/p' log)
  awk "BEGIN { exit !($loss < $mean_share * $mean && $loss < $linear_share * $linear) }" ||
    wrong "loss $loss, of the mean picture $mean, linear $linear"
  "$program" "$@" --load one/model.safetensors --output again > loaded 2> error || wrong "--load: $(cat error)"
  grep -q "^test *loss $loss " loaded || wrong "the model that was loaded differs: $(cat loaded)"
  for file in again/*; do cmp "$file" "one/${file#again/}" || wrong 'the model that was loaded draws other pictures'; done
}
stopped_by_nan last.safetensors 'last.safetensors log.csv' --data dots.csv --lr 1e9
"$program" --load bad/last.safetensors --data dots.csv --output again > log 2> error ||
  wrong "the model before NaN: $(cat error)"
if "$program" --data digits --epochs 1 --limit 64 --output one > log 2> error; then
  learns 0.7 1 'codes.svg log.csv loss.svg model.safetensors reconstructions.png' --data digits --epochs 60
  refused 'model.safetensors' --load one/model.safetensors --data good
elif grep -q 'there is no' error; then echo "SKIPPED: $(cat error)" >&2
else wrong "digits: $(cat error)"
fi
if [ -e $real/train-images-idx3-ubyte.gz ]; then
  learns 0.5 9 'log.csv loss.svg model.safetensors reconstructions.png' --data $real --limit 3000 --epochs 3
  same_again
fi
finish
