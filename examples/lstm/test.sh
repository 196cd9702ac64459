#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER: short runs learn where words are broken better than their neighbours tell, write their files, the
# same ones again for the same seed, and break words with the model that is read back; patterns break words as TeX does;
# every bad input ends in one sentence on standard error and status 1, without a model.
. "$(dirname "$0")/../common/test_functions.sh"

# Words whose breaks hang on what is far away: where a word ends in "us" all of its syllables are open, else closed.
awk 'BEGIN {
  split("pa re ti lo mu de fa ki so na", s)
  for (i = 0; i < 1000; ++i) {
    w = ""
    n = i % 10 + 1; m = int(i / 10) % 10 + 1; k = int(i / 100) + 1
    if ((n + m + k) % 2) w = s[n] "-" s[m] "-" s[k] "-nus"; else { w = s[n] s[m] s[k] "nat" }
    print w
  }
}' > list

sed '1,3s/-/\xc2\xad/g' list > soft  # another hyphen, the same words
# f1 ROW: of the table in the log
f1() { awk -v row="$1" '$1 " " $2 == row { print $5 }' log; }
"$program" --data list --steps 150 --output one --log one.csv > log 2> progress || wrong "a good run: $(cat progress)"
for file in model.safetensors loss.svg breaks.svg; do [ -s "one/$file" ] || wrong "no $file"; done
[ "$(ls one | wc -l)" -eq 3 ] || wrong "other files in the folder: $(ls one)"
grep -q 'read back: equal' log || wrong 'the model was not read back'
awk "BEGIN { exit !($(f1 'this model') > 0.99 && $(f1 'four letters') < 0.9) }" || wrong "it has not learnt: $(cat log)"
[ "$(wc -l < one.csv)" -ge 20 ] || wrong "--log: $(cat one.csv)"
[ "$(sed 1q one.csv)" = step,train_loss,dev_loss,dev_f1,dev_words ] || wrong "--log: $(cat one.csv)"
"$program" --load one/model.safetensors Sotirenus sotirenat > broken 2> error || wrong "--load: $(cat error)"
[ "$(echo $(cat broken))" = 'so-ti-re-nus sotirenat' ] || wrong "it breaks: $(cat broken)"
"$program" --data soft --steps 150 --output two --log two.jsonl sotirenus > log 2> progress || wrong 'a second run'
[ "$(tail -n 1 log)" = 'so-ti-re-nus' ] || wrong "words behind the options: $(tail -n 1 log)"
tail -n 1 two.jsonl | grep -q '^{"step":150,"train_loss":[0-9.e-]*,.*}$' || wrong "--log: $(tail -n 1 two.jsonl)"
cmp one/model.safetensors two/model.safetensors || wrong 'the same seed, another model'
"$program" --data list --steps 20 --seed 7 --output three > log 2> progress || wrong 'a third run'
! cmp -s one/model.safetensors three/model.safetensors || wrong 'another seed, the same model'
# One that reads from the beginning alone cannot know.
"$program" --data list --steps 150 --model forward --output four > log 2> progress || wrong "forward: $(cat progress)"
awk "BEGIN { exit !($(f1 'this model') < 0.9) }" || wrong "forward: $(cat log)"
"$program" --load four/model.safetensors --model forward sotirenus > broken 2> error || wrong "forward: $(cat error)"
"$program" --help > help 2> error || wrong '--help'
grep -q -- '--steps' help || wrong '--help does not name --steps'

# Liang's example, and words that are nothing but letters.
printf 'UTF-8\nLEFTHYPHENMIN 2\nRIGHTHYPHENMIN 3\nhy3ph\nhe2n\nhena4\nhen5at\n1na\nn2at\n1tio\n2io\no2n\n.caf\303\2513b\n' > patterns
sed '1s/.*/ISO8859-1/; s/\xc3\xa9/\xe9/' patterns > latin
{
  printf "hyphenation\nHyphenation\nit's\nio\ncaf\303\251bar\n"
  awk 'BEGIN { for (i = 0; i < 200; ++i) printf "hyphenation%c%c\n", 97 + i % 26, 97 + int(i / 26) }'
} > plain
for kind in patterns latin; do
  "$program" --list plain --patterns $kind --steps 60 --output five hyphenation > log 2> progress ||
    wrong "patterns: $(cat progress)"
  grep -q 'plain by .*: 202 words, 27 different letters, 3 lines skipped' log || wrong "patterns: $(cat log)"
  [ "$(tail -n 1 log)" = 'hy-phen-ation' ] || wrong "patterns: $(tail -n 1 log)"
done

: > empty
printf 'one\ntwo\n' > few
head -c 900 list > binary && printf '\000\001\002' >> binary
{ cat list; echo '-ab'; } > begins
{ cat list; echo 'ab-'; } > ends
{ cat list; echo 'a--b'; } > double
{ cat list; echo 'a b'; } > blank
{ cat list; printf 'a\303\n'; } > torn
{ cat list; echo 'abcdefghijklmnopqrstuvwxy'; } > long
awk 'BEGIN { for (i = 0; i < 200; ++i) printf "a%c%c\n", 200 + int(i / 64), 128 + i % 64 }' | LC_ALL=C sed 's/^a/ab/' > many
sed '1s/.*/KOI8-R/' patterns > koi
sed 's/^hy3ph/h 3/' patterns > gap
sed 's/^hy3ph/NEXTLEVEL/' patterns > level
sed 's/MIN 2/MIN two/' patterns > distance
sed 3q patterns > none
head -c 1000 one/model.safetensors > broken
refused 'cannot read nowhere: No such file' --data nowhere --output bad
refused 'empty is empty' --data empty --output bad
refused 'few has 2 words; at least 100' --data few --output bad
refused 'not a text file (byte 0x00' --data binary --output bad
refused 'torn:1001: ' --data torn --output bad
for file in begins ends double blank; do
  refused "$file:1001: .* is no word with hyphens between its letters" --data $file --output bad
done
refused 'long:1001: .* has 25 letters; the model reads 24' --data long --output bad
refused 'different letters; the model knows 127' --data many --output bad
refused 'cannot read nowhere' --list plain --patterns nowhere --output bad
refused 'cannot read nowhere' --list nowhere --patterns patterns --output bad
refused 'koi: the encoding is KOI8-R' --list plain --patterns koi --output bad
refused "gap:4: 'h 3' is no pattern" --list plain --patterns gap --output bad
refused "level:4: 'NEXTLEVEL' begins a level of compounds" --list plain --patterns level --output bad
refused "distance:2: 'LEFTHYPHENMIN two' is no distance" --list plain --patterns distance --output bad
refused 'none has no patterns' --list plain --patterns none --output bad
refused '--steps' --data list --steps 0 --output bad
refused '--lr' --data list --lr nan --output bad
refused 'steps; a smaller --lr may help' --data list --steps 50 --lr 1e9 --output bad
stopped_by_nan last.safetensors last.safetensors --data list --steps 50 --lr 1e38
"$program" --load bad/last.safetensors sotirenus > log 2> error || wrong "the model before NaN: $(cat error)"
stopped_by_nan last.safetensors last.safetensors --data list --steps 50 --lr 1e38 --model forward
"$program" --load bad/last.safetensors --model forward sotirenus > log 2> error ||
  wrong "the model before NaN: $(cat error)"
refused '--model: gru not in {bidirectional,forward}' --data list --model gru --output bad
refused '--list' --data list --list plain --output bad
refused 'run.txt ends neither in .csv nor in .jsonl' --data list --log run.txt --output bad
refused 'cannot write no/run.csv' --data list --log no/run.csv --output bad
refused 'cannot make the folder list/x' --data list --output list/x
refused '--load: which words' --load one/model.safetensors
refused "the letter 'z' of 'zebra' is not among those" --load one/model.safetensors zebra
refused 'is no word of 1 to 24 letters' --load one/model.safetensors abcdefghijklmnopqrstuvwxy
refused 'broken' --load broken sotirenus
refused 'No such file' --load none.safetensors sotirenus
refused 'four/model.safetensors' --load four/model.safetensors sotirenus

# The words of the system by the patterns of Debian's hyphen-en-us, where they are.
if [ -e /usr/share/hyphen/hyph_en_US.dic ] && [ -e /usr/share/dict/words ]; then
  "$program" --steps 150 --output real hyphenation > log 2> progress || wrong "real words: $(cat progress)"
  awk "BEGIN { exit !($(f1 'this model') > 0.65) }" || wrong "real words: $(cat log)"
else
  echo 'SKIPPED: no /usr/share/hyphen/hyph_en_US.dic; install hyphen-en-us (cmake/install_dependencies.sh)' >&2
fi
[ $failures -eq 0 ]
