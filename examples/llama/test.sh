#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh PROGRAM FOLDER DATA: the texts that a small published model is known to write, its score, and bad input.
case $3 in /*) data=$3 ;; *) data=$(pwd)/$3 ;; esac
. "$(dirname "$0")/../common/test_functions.sh"

"$program" > log 2> error || wrong 'no arguments'
grep -q 'karpathy/tinyllamas' log || wrong 'no arguments: it does not say where models can be had'
"$program" --help > log 2> error || wrong '--help'
for option in --lora --tokenizer --prompt --chat --file --perplexity --tokens --temperature --top-k --top-p --min-p \
  --repeat-penalty --seed --ctx --dtype --threads --lora --stats --cache --session --keep --stop --logit-bias --typical-p; do
  grep -q -- "$option" log || wrong "--help does not name $option"
done
refused 'none.gguf: No such file' none.gguf
printf 'GGUF' > cut.gguf
refused 'cut.gguf' cut.gguf
printf 'something' > text.txt
refused 'is of no format that is known' text.txt

models=$data/llama
if ! [ -d "$models" ]; then
  echo "SKIPPED: no published models in $data" >&2
  exit 77
fi

# What llama2.c writes at temperature 0.
story='Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red ball. She wanted to play with it, but it was too high.'
sed -n '/^Once upon/,$p' "$models/stories260K.md" | sed '/^```/,$d' > whole
[ "$(wc -c < whole)" -gt 500 ] || wrong 'stories260K.md has no text'
for model in stories260K.bin stories260K_v1.bin stories260K-f32.gguf hf; do
  "$program" "$models/$model" --tokenizer "$models/tok512.bin" --temperature 0 --tokens 260 --prompt 'Once upon' \
    > log 2> error || wrong "$model: $(cat error)"
  case $(cat log) in "$(cat whole)"*) ;; *) wrong "$model: $(cat log)" ;; esac
done
"$program" "$models/stories260K-f32.gguf" --temperature 0 --tokens 100 > log 2> error || wrong "own: $(cat error)"
grep -qF "$story" log || wrong "the tokenizer in the file: $(cat log)"

# Quantized here, and as its file has it: what llama.cpp writes with its q8_0 begins so too.
for dtype in q8_0 stored; do
  "$program" "$models/stories260K-q8_0.gguf" --dtype $dtype --temperature 0 --tokens 60 --threads 1 > log 2> error ||
    wrong "--dtype $dtype: $(cat error)"
  grep -qF 'She loved to play outside in the park. One day, she saw a big, red ball.' log || wrong "$dtype: $(cat log)"
done

# The same seed, the same text; another, another.
for seed in 1 1 2; do
  "$program" "$models/stories260K-f32.gguf" --seed "$seed" --tokens 60 --prompt 'Once' > "log$seed.new" 2> error ||
    wrong "--seed: $(cat error)"
  [ ! -e "log$seed" ] || cmp -s "log$seed" "log$seed.new" || wrong '--seed 1 twice'
  mv "log$seed.new" "log$seed"
done
! cmp -s log1 log2 || wrong '--seed 1 and 2 give one text'

# Several prompts at once: each text is what it is alone.
for how in '--temperature 0' '--seed 3' '--temperature 0 --cache f16 --stop her'; do
  for prompt in 'Once upon a time' 'Lily had a' 'The big dog'; do
    # shellcheck disable=SC2086
    "$program" "$models/stories260K-f32.gguf" $how --tokens 50 --prompt "$prompt" 2> error || wrong "$how: $(cat error)"
    [ "$prompt" = 'The big dog' ] || echo ---
  done > log.alone
  # shellcheck disable=SC2086
  "$program" "$models/stories260K-f32.gguf" $how --tokens 50 --prompt 'Once upon a time' --prompt 'Lily had a' \
    --prompt 'The big dog' --stats > log 2> error || wrong "prompts, $how: $(cat error)"
  cmp -s log log.alone || wrong "prompts, $how: $(cat log)"
  case $how in *stop*) ;; *) grep -q 'decode   147 tokens' error || wrong "prompts: $(cat error)" ;; esac
done
# What two begin with is read once, and counted once.
read_of() {
  "$program" "$models/stories260K-f32.gguf" --tokens 1 --stats "$@" > log 2> error || wrong "$*: $(cat error)"
  sed -n 's/^prefill *\([0-9]*\) tokens.*/\1/p' error
}
alone=$(read_of --prompt "$story") both=$(read_of --prompt "$story" --prompt "$story He ran.")
[ "$alone" -gt 60 ] && [ "$both" -gt "$alone" ] && [ "$both" -lt $((alone + 10)) ] ||
  wrong "one beginning: $alone tokens, then $both"
refused 'excludes' "$models/stories260K-f32.gguf" --prompt a --prompt b --chat
refused 'excludes' "$models/stories260K-f32.gguf" --prompt a --prompt b --file text.txt
refused 'excludes' "$models/stories260K-f32.gguf" --prompt a --prompt b --perplexity text.txt
refused '--session is of one text, and 2 prompts are given' "$models/stories260K-f32.gguf" --prompt a --prompt b \
  --session s

# Keys and values in 16 bits; a text that stops before a word, and one without a token: 371 is that of " Lily".
for cache in f16 bf16; do
  "$program" "$models/hf" --tokenizer "$models/tok512.bin" --temperature 0 --tokens 60 --prompt 'Once upon' \
    --cache $cache > log 2> error || wrong "--cache $cache: $(cat error)"
  grep -qF 'there was a little girl named Lily. She loved to play outside in the park.' log || wrong "$cache: $(cat log)"
done
refused 'a cache of Q8_0 needs heads of a multiple of 32, got 8' "$models/stories260K-f32.gguf" --cache q8_0
"$program" "$models/stories260K-f32.gguf" --temperature 0 --tokens 100 --stop 'nothing' --stop 'to play out' > log \
  2> error || wrong "--stop: $(cat error)"
[ "$(cat log)" = 'Once upon a time, there was a little girl named Lily. She loved ' ] || wrong "--stop: $(cat log)"
"$program" "$models/stories260K-f32.gguf" --temperature 0 --tokens 40 --logit-bias 301=-inf > log 2> error ||
  wrong "--logit-bias: $(cat error)"
refused 'token 512, there are 512' "$models/stories260K-f32.gguf" --logit-bias 512=1
refused '--threads: a whole number from 0 on required, got -2' "$models/stories260K-f32.gguf" --threads -2
refused '--tokens: a whole number from 1 on required, got 0' "$models/stories260K-f32.gguf" --tokens 0
refused "'12' is not of the form TOKEN=NUMBER" "$models/stories260K-f32.gguf" --logit-bias 12

# A text goes on from its file, and is what it is without; another model has no use for the file.
one='Once upon a time, there was a little' two="$story"
"$program" "$models/stories260K-f32.gguf" --temperature 0 --tokens 30 --prompt "$one" --session s > log 2> error ||
  wrong "--session: $(cat error)"
for session in '--session s --stats' '--session new' ''; do
  # shellcheck disable=SC2086
  "$program" "$models/stories260K-f32.gguf" --temperature 0 --tokens 40 --prompt "$two" $session > log.new 2> error ||
    wrong "$session: $(cat error)"
  case $session in
    *stats) mv log.new log.session; cp error stats ;;
    *) cmp -s log.new log.session || wrong "$session: $(cat log.new)" ;;
  esac
done
prefilled=$(sed -n 's/^prefill *\([0-9]*\) tokens.*/\1/p' stats)
[ "${prefilled:-999}" -lt 60 ] || wrong "the session is not used: $(cat stats)"
refused 'is no session, or that of another model' "$models/llama-2-tiny-random.gguf" --session s
printf 'x' > s
refused 's' "$models/stories260K-f32.gguf" --session s

# GPT-2; its numbers are random.
gpt2=$data/../refs/hf/gpt2-tiny
"$program" "$gpt2" --tokenizer "$models/tok512.bin" --prompt 'Once upon' --tokens 20 --stats > log 2> error ||
  wrong "gpt2: $(cat error)"
grep -q 'decode' error || wrong "gpt2: $(cat error)"
refused 'GPT-2 is computed in f32, bf16 or f16' "$gpt2" --tokenizer "$models/tok512.bin" --dtype q4_0

printf 'Once upon a time, there was a little girl named Lily.' > story.txt
"$program" "$models/stories260K-f32.gguf" --perplexity story.txt --stats > log 2> error || wrong "$(cat error)"
grep -q 'loss [01]\.' log || wrong "--perplexity: $(cat log)"
grep -q 'prefill' error || wrong "--stats: $(cat error)"
printf 'Hello\n' | "$program" "$models/stories260K-f32.gguf" --chat --tokens 10 > log 2> error || wrong "$(cat error)"
grep -q "no template for conversations; they are written as Llama 2's" error || wrong "--chat: $(cat error)"
cp "$models/stories260K.bin" alone.bin
refused 'has no tokenizer' alone.bin --prompt x
refused 'there is room for 8' "$models/stories260K-f32.gguf" --file story.txt --ctx 8
refused 'none/adapter_config.json' "$models/stories260K-f32.gguf" --lora none
refused 'top_p must be' "$models/stories260K-f32.gguf" --prompt a --top-p 2
