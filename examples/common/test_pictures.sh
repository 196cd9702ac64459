# SPDX-License-Identifier: BSL-1.0
# What the tests of the examples that learn from pictures share besides; for `.`.
. "$(dirname "$0")/../common/test_functions.sh"
real=/usr/share/datasets/fashion-mnist

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
# data FOLDER: good files, of which the caller spoils some
data() {
  mkdir -p "$1"
  for part in train t10k; do
    pictures 128 28 > "$1/$part-images-idx3-ubyte"
    labels 128 > "$1/$part-labels-idx1-ubyte"
  done
}

# What all of them refuse.
refuse_options() {
  data good
  head -c 300 /dev/zero > zeros.safetensors
  mkdir -p none
  refused 'cannot read none/.*-images-idx3-ubyte.gz: No such file' --data none --output bad
  refused '--epochs' --data good --epochs 0 --output bad
  refused '--epochs' --data good --epochs many --output bad
  refused '--lr' --data good --lr nan --output bad
  refused '--limit' --data good --limit -5 --output bad
  refused '64 are needed' --data good --limit 63 --output bad
  refused '--nonsense' --nonsense --output bad
  refused 'cannot make the folder error/x' --data good --output error/x
  refused 'No such file' --load none.safetensors
  refused 'zeros.safetensors' --load zeros.safetensors --data good
  "$program" --help > help 2> error || wrong '--help'
  grep -q -- '--epochs' help || wrong '--help does not name --epochs'
}

# same_again: the same model for the same seed, and another for another
same_again() {
  "$program" --data $real --limit 320 --epochs 1 --output two > log 2> progress || wrong 'a second run'
  "$program" --data $real --limit 320 --epochs 1 --output three > log 2> progress || wrong 'a third run'
  cmp two/model.safetensors three/model.safetensors || wrong 'the same seed, another model'
  "$program" --data $real --limit 320 --epochs 1 --seed 7 --output four > log 2> progress || wrong 'a fourth run'
  ! cmp -s two/model.safetensors four/model.safetensors || wrong 'another seed, the same model'
}

# finish: the status; 77, and a loud sentence, where there are no real pictures
finish() {
  [ $failures -eq 0 ] || exit 1
  [ ! -e $real/train-images-idx3-ubyte.gz ] || exit 0
  echo "SKIPPED: no $real; install dataset-fashion-mnist (cmake/install_dependencies.sh)" >&2
  exit 77
}
