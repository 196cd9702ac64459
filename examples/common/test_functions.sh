# SPDX-License-Identifier: BSL-1.0
# What the tests of the examples share; for `.`. Sets up the folder of its second argument.
set -u
program=$1
folder=$2
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder" || exit 1
failures=0
wrong() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# refused TEXT ARGUMENTS...: status 1, one line on standard error that has TEXT, no model
refused() {
  text=$1
  shift
  rm -rf bad
  "$program" "$@" > log 2> error
  status=$?
  [ $status -eq 1 ] || wrong "status $status, not 1: $*"
  # The progress of a run that breaks off comes before.
  [ "$(grep -vc '^  \[' error)" -eq 1 ] || wrong "not one line: $* said: $(cat error)"
  grep -q -- "$text" error || wrong "'$text' is not in: $(cat error)"
  [ ! -e bad/model.safetensors ] || wrong "a model was written: $*"
}
