#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# test.sh WORDS FOLDER [COMPILER FLAG...]: a model that examples/words (the program WORDS) has trained makes up the same
# words in WebAssembly. Status 77 where a tool is missing: install_dependencies.sh test installs them.
here=$(cd "$(dirname "$0")" && pwd)
for tool in clang++-19 wasm-ld-19 node; do
  command -v $tool >/dev/null 2>&1 || { echo "wasm: SKIPPED, no $tool" && exit 77; }
done
[ -e /usr/lib/wasm32-wasi/libc++.a ] || { echo 'wasm: SKIPPED, no libc++-19-dev-wasm32' && exit 77; }
. "$here/../common/test_functions.sh"
shift 2
sh "$here/build.sh" names.wasm -Werror "$@" || exit 1
names() { node --no-warnings "$here/run.mjs" names.wasm "$@" 2> error; }

two_hundred_words > list
"$program" --data list --steps 400 --output . > log 2> error || wrong "words: $(cat error)"
for seed in 1 7; do
  "$program" --load model.safetensors --seed $seed | sed 1d | tr -s ' ' '\n' | grep . > here
  names model.safetensors $seed 20 > there || wrong "seed $seed: $(cat error)"
  [ "$(wc -l < there)" -eq 20 ] || wrong "seed $seed: $(cat there)"
  cmp here there || wrong "seed $seed: the words are $(paste here there)"
done
names model.safetensors 1 > first || wrong "the first letter: $(cat error)"
awk 'NR == 1 { good = $0 == "4 numbers at a time" } NR > 1 { sum += $1; good = good && $1 > 0 }
     END { exit !(good && NR == 28 && sum > 0.999999 && sum < 1.000001) }' first || wrong "the first letter: $(cat first)"
names none.safetensors 1 20 > there && wrong 'a file that is not there'
grep -q '^safetensors: cannot read none.safetensors: No such file or directory$' error || wrong "it said $(cat error)"
head -c 1000 model.safetensors > cut.safetensors
names cut.safetensors 1 20 > there && wrong 'half a file'
grep -q '^safetensors: cut.safetensors: .* its data ends behind the file$' error || wrong "it said $(cat error)"
[ $failures -eq 0 ]
