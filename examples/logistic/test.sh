#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER: both methods reach the same optimum, on made-up tables and, where they are, on real ones; every
# bad input ends in one sentence on standard error and status 1.
. "$(dirname "$0")/../common/test_functions.sh"

# Points around corners of a square, some of them in the class of another.
points() {
  awk -v classes="$1" 'BEGIN {
    print "x,\"y, the other\",kind"
    seed = 1
    for (i = 0; i < 300; ++i) {
      for (k = 0; k < 3; ++k) { seed = (seed * 16807) % 2147483647; u[k] = seed / 2147483647 }
      c = i % classes
      printf "%.6f,%.6f,%s\n", c % 2 + 2 * u[0], 100 * (int(c / 2) + 2 * u[1]),
             substr("antbeecowdog", 1 + 3 * (u[2] < 0.9 ? c : (c + 1) % classes), 3)
    }
  }'
}
points 2 > two.csv
points 4 > four.csv
gzip -c four.csv > four.csv.gz
tail -n +2 four.csv > bare.csv

# fits LEAST ARGUMENTS...: both gradients are below 1e-8, weights agree to 1e-5, accuracy on unseen rows is LEAST or more
fits() {
  least=$1
  shift
  "$program" "$@" > log 2> error || wrong "$*: $(cat error)"
  sed -n 's/.*gradient \([0-9.e+-]*\)$/\1/p; s/^weights *apart by \([0-9.e+-]*\) .*/weights \1/p; s/.*, \([0-9.]*\) on those to test on.*/accuracy \1/p' log |
    awk -v least="$least" '
      $1 == "weights" { if ($2 < 1e-5) ++good; next }
      $1 == "accuracy" { if ($2 >= least) ++good; next }
      $1 < 1e-8 { ++good }
      END { exit good != 4 }' || wrong "$*: $(cat log)"
}
fits 0.65 --data two.csv
fits 0.45 --data four.csv
cp log plain
fits 0.45 --data four.csv --products
fits 0.45 --data four.csv --tolerance 1e-12 --l2 0
fits 0.45 --data four.csv.gz
sed 's/four.csv.gz/four.csv/; s/[0-9.]* s:/s:/' log > one
sed 's/[0-9.]* s:/s:/' plain | cmp - one || wrong 'a packed table is another'
fits 0.45 --data bare.csv --no-header
fits 0.30 --data four.csv --seed 7 --test 0.5 --target kind
for known in 'breast_cancer 0.95' 'iris 0.9' 'wine 0.95' 'digits 0.95'; do
  set -- $known
  if "$program" --data "$1" > log 2> error; then fits "$2" --data "$1" --products
  elif grep -q 'there is no' error; then echo "SKIPPED: $(cat error)" >&2
  else wrong "$1: $(cat error)"
  fi
done
"$program" --help > help 2> error || wrong '--help'
grep -q -- '--products' help || wrong '--help does not name --products'

: > empty.csv
{ cat four.csv; echo '1,2'; } > ragged.csv
{ cat four.csv; echo '1,many,ant'; } > words.csv
{ cat four.csv; echo '1,,ant'; } > hole.csv
{ cat four.csv; echo '1,inf,ant'; } > infinite.csv
{ cat four.csv; echo '"1,2,ant'; } > quote.csv
{ cat four.csv; echo '1,2,once'; } > rare.csv
grep -v -e bee -e cow -e dog four.csv > same.csv
head -c 500 four.csv.gz > short.csv.gz
cut -d, -f3 two.csv > alone.csv
refused 'cannot read none.csv: No such file' --data none.csv
refused 'empty.csv is empty' --data empty.csv
refused 'ragged.csv:302: 2 fields, there are 3 columns' --data ragged.csv
refused "words.csv:302: 'many' in column y, the other is no number" --data words.csv
refused 'hole.csv:302: column y, the other is empty' --data hole.csv
refused 'infinite.csv: column y, the other has a number that is not finite' --data infinite.csv --seed 4
refused 'quote.csv:302: a quote is not closed' --data quote.csv
refused 'same.csv has one class, ant, in column kind' --data same.csv
refused 'short.csv.gz ends early' --data short.csv.gz
refused 'alone.csv' --data alone.csv
refused 'four.csv has no column what but x, y, the other, kind' --data four.csv --target what
refused 'newton: the gradient is [0-9.e-]*, not below 1e-08; a larger --l2' --data four.csv --max-steps 1
# A feature that does not vary: its weight may be any.
awk -F, -v OFS=, 'NR == 1 { print "x,same,kind"; next } { print $1, 7, $3 }' four.csv > constant.csv
refused 'newton: the data leaves weights open (solve: .*); a larger --l2' --data constant.csv --l2 0
fits 0.3 --data constant.csv
refused '--l2' --data four.csv --l2 -1
refused '--test' --data four.csv --test 1
refused 'none is left' --data four.csv --test 0.0001
refused '--nonsense' --nonsense
[ $failures -eq 0 ]
