#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER DATA: numbers of a small vocabulary made here and, where they are, of published ones; text comes
# back; every bad input ends in one sentence on standard error and status 1.
case $3 in /*) data=$3 ;; *) data=$(pwd)/$3 ;; esac
. "$(dirname "$0")/../common/test_functions.sh"

# gives EXPECTED ARGUMENTS...: what the program prints
gives() {
  expected=$1
  shift
  "$program" "$@" > log 2> error || wrong "$*: $(cat error)"
  [ "$(cat log)" = "$expected" ] || wrong "$*: $(cat log), not $expected"
}

cat > tokenizer.json <<'END'
{"version": "1.0",
 "added_tokens": [{"id": 0, "content": "<s>", "special": true}, {"id": 1, "content": "</s>", "special": true}],
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
 "model": {"type": "BPE", "vocab": {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "\u0120": 4, "ab": 5, "\u0120a": 6, "\u0120ab": 7},
           "merges": ["a b", "\u0120 ab", "\u0120 a"]}}
END
gives '5 7 6' tokenizer.json 'ab ab a'
gives '0 5' tokenizer.json ab --bos
gives '5 1' . ab --eos
gives '5 0 5' tokenizer.json 'ab<s>ab' --special
gives 'ab ab a' tokenizer.json '5 7 6' --decode
gives 'ab' tokenizer.json '0, 5' --decode
gives '<s>ab' tokenizer.json '0 5' --decode --special
printf 'ab a' > text
gives '5 6' tokenizer.json --file text
"$program" tokenizer.json < text > log 2> error || wrong "standard input: $(cat error)"
[ "$(cat log)" = '5 6' ] || wrong "standard input: $(cat log)"
printf 'ab\n__ggml_vocab_test__\n\n__ggml_vocab_test__\n a\n__ggml_vocab_test__\n' > cases.inp
printf ' 5\n\n 6\n' > cases.out
"$program" tokenizer.json --cases cases.inp > log 2> error || wrong "cases: $(cat error)"
cmp log cases.out || wrong 'cases'
"$program" tokenizer.json 'ab a' --pieces > log || wrong '--pieces'
grep -q "^6	' a'$" log || wrong "--pieces: $(cat log)"

if [ -d "$data/tokenizers" ]; then
  gives '15496 11 995 220' "$data/tokenizers/gpt2" 'Hello, world '
  gives '1 15043 3186' "$data/llama/tokenizer.model" 'Hello world'
  gives '15043 3186' "$data/llama/tokenizer.bin" 'Hello world' --no-bos
  # Cases are without a first token, unless it is asked for.
  printf 'Hello world\n__ggml_vocab_test__\n' > spm.inp
  gives ' 15043 3186' "$data/llama/tokenizer.model" --cases spm.inp
  gives ' 1 15043 3186' "$data/llama/tokenizer.model" --cases spm.inp --bos
else
  echo "SKIPPED: no published tokenizers in $data" >&2
fi
"$program" --help > help 2> error || wrong '--help'
grep -q -- '--cases' help || wrong '--help does not name --cases'

: > empty.json
printf '{"model": {"vocab": {"a": 0}, "merges": ["a b"]}}' > merges.json
printf '\037\213\010' > packed.model
printf '\012\377\377\377\377\017' > cut.model
printf 'ab' > open.inp
refused 'cannot read none.json: No such file' none.json ab
refused 'empty.json: it is empty' empty.json ab
refused "merges.json: merge 0 names no token: 'b'" merges.json ab
refused 'packed.model: it is packed by gzip' packed.model ab
refused 'cut.model: it is no SentencePiece model' cut.model ab
refused 'there is no token 8, the last is 7' tokenizer.json '8' --decode
refused "'x' is not the number of a token" tokenizer.json 'x' --decode
refused "no token for '\\\\x7A'\|no token for 'z'" tokenizer.json z
refused '__ggml_vocab_test__' tokenizer.json --cases open.inp
refused "--pre: 'what' is not known" tokenizer.json ab --pre what
refused 'excludes' tokenizer.json ab --file text
refused '--nonsense' tokenizer.json --nonsense
[ $failures -eq 0 ]
