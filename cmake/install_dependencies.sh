#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# install_dependencies.sh demo|build|test|cross - install what is missing (Debian, root): for the demo, for building the
# tests, and for running all of them, which takes further tools. With everything in place it only looks at a few files.
# System packages come from the machine's own apt sources, which stay as they are; headers that these sources have only
# in too old a version (xsimd >= 13, Catch2 >= 3) come from a newer suite of the same mirror and are unpacked below
# build/deps, where cmake/dependencies.cmake looks first. `cross` gets what the presets rvv and neon need: compilers for
# other processors, qemu, the source of Catch2, and zlib for those processors.
set -eu
what=${1:-test}
cd "$(dirname "$0")/.."
deps=build/deps
log=$deps/install_$what.log
wanted=''   # apt packages to install
private=''  # SUITE/PACKAGE to unpack below build/deps
missing=''  # the same for people

die() {
  echo "install_dependencies: $*" >&2
  exit 1
}
want() { missing="$missing, $1" && wanted="$wanted $2"; }
has_command() { command -v "$1" >/dev/null 2>&1; }
has_header() {
  for dir in $deps/usr/include /usr/local/include /usr/include; do
    [ ! -e "$dir/$1" ] || return 0
  done
  return 1
}
has_cmake() {
  has_command cmake || return 1
  set -- $(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
  [ "$1" -gt 3 ] || { [ "$1" -eq 3 ] && [ "$2" -ge 25 ]; }
}
has_xsimd() {
  for dir in $deps/usr/include /usr/local/include /usr/include; do
    major=$(sed -n 's/^#define XSIMD_VERSION_MAJOR \([0-9]*\).*/\1/p' "$dir/xsimd/config/xsimd_config.hpp" 2>/dev/null) || :
    [ "${major:-0}" -lt 13 ] || return 0
  done
  return 1
}
has_catch2() {
  for file in $deps/usr/lib/cmake/Catch2 $deps/usr/lib/*/cmake/Catch2 /usr/local/lib/cmake/Catch2 \
    /usr/lib/cmake/Catch2 /usr/lib/*/cmake/Catch2; do
    ! grep -q 'set(PACKAGE_VERSION "3\.' "$file/Catch2ConfigVersion.cmake" 2>/dev/null || return 0
  done
  return 1
}
has_zlib_for() {
  for root in $deps/cross/"$1"/usr /usr/"$1"; do
    [ ! -e "$root/include/zlib.h" ] || [ ! -e "$root/lib/libz.a" ] || return 0
  done
  return 1
}

# --- what is missing ---------------------------------------------------------------------------------------------
[ -n "${CXX:-}" ] || has_command g++ || has_command clang++ || want 'a C++ compiler' g++
has_cmake || want 'cmake >= 3.25' cmake
has_command ninja || want ninja ninja-build
has_command python3 || want python3 python3
has_header boost/hana.hpp || want Boost.Hana 'libboost1.81-dev|libboost-dev'
has_header nlohmann/json.hpp || want nlohmann-json nlohmann-json3-dev
has_header CLI/CLI.hpp || want CLI11 libcli11-dev
[ -e /usr/share/dict/words ] || want 'a word list' wamerican
has_xsimd || missing="$missing, xsimd >= 13"
if [ "$what" = cross ]; then
  has_command clang++-19 || want clang-19 clang-19
  has_command ld.lld-19 || want lld-19 lld-19
  has_command riscv64-linux-gnu-g++ || want 'g++ for RISC-V' g++-riscv64-linux-gnu
  has_command aarch64-linux-gnu-g++ || want 'g++ for Arm' g++-aarch64-linux-gnu
  has_command qemu-riscv64-static || has_command qemu-riscv64 || want qemu-user qemu-user-static
  [ -e $deps/src/catch2/CMakeLists.txt ] || missing="$missing, the source of Catch2"
  for triple in riscv64-linux-gnu aarch64-linux-gnu; do
    has_zlib_for $triple || missing="$missing, zlib for $triple"
  done
fi
case $what in
build | test)
  has_header zlib.h || want zlib zlib1g-dev
  has_catch2 || missing="$missing, Catch2 >= 3"
  ;;
esac
# A second compiler, one for another processor and the formatter make the tests stricter, and examples learn from data;
# nothing fails without them.
optional=''
try() { [ -e "$deps/tried_$1" ] || optional="$optional $1"; }
if [ "$what" = test ]; then
  has_command clang++-19 || try clang-19
  has_command clang-format-19 || try clang-format-19
  # For the kernels for RISC-V vectors (rvv_test.sh).
  has_command ld.lld-19 || try lld-19
  has_command riscv64-linux-gnu-g++ || try g++-riscv64-linux-gnu
  has_command qemu-riscv64-static || try qemu-user-static
  # For examples/wasm.
  [ -e /usr/lib/wasm32-wasi/libc++.a ] || try libc++-19-dev-wasm32
  [ -e /usr/lib/llvm-19/lib/clang/19/lib/wasi ] || try libclang-rt-19-dev-wasm32
  has_command node || try nodejs
  [ -e /usr/share/datasets/fashion-mnist ] || try dataset-fashion-mnist
  [ -e /usr/share/hyphen/hyph_en_US.dic ] || try hyphen-en-us
fi
# The tables of examples/logistic and autoencoder: some files of a package that is not installed, for it needs much else.
tables=usr/lib/python3/dist-packages/sklearn/datasets/data
[ "$what" = test ] && [ ! -e $deps/tables_tried ] && [ ! -e $deps/$tables ] && [ ! -e /$tables ] || tables=''
[ -n "$missing$optional$tables" ] || exit 0

# --- system packages ---------------------------------------------------------------------------------------------
give_up() {
  [ -n "$missing" ] || exit 0
  die "missing: ${missing#, }; run it as root on Debian, or install these yourself"
}
root() { [ "$(id -u)" -eq 0 ]; }
has_command apt-get || give_up
root || [ -z "$wanted" ] || give_up
mkdir -p $deps
: > $log
run() { "$@" >>$log 2>&1; }
export DEBIAN_FRONTEND=noninteractive
echo "install_dependencies: installing ${missing#, }$optional${tables:+ tables} (log: $log)" >&2
! root || run apt-get update -q ||
  echo "install_dependencies: apt-get update failed; going on with the lists there are" >&2

candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *//p' | grep -v none; }
available() { # the first of 'a|b' that apt knows
  for package in $(echo "$1" | tr '|' ' '); do
    [ -z "$(candidate "$package")" ] || { echo "$package" && return 0; }
  done
  die "apt knows no package $1"
}
# newer FILE-CHECK PACKAGE MAJOR SUITE - from the system's own suite when it is new enough, else from SUITE
newer() {
  ! "$1" || return 0
  major=$(candidate "$2" | sed 's/^[0-9]*://; s/\..*//')
  if [ "${major:-0}" -ge "$3" ] && root; then
    wanted="$wanted $2"
  else
    private="$private $4/$2"
  fi
}
newer has_xsimd libxsimd-dev 13 trixie
case $what in
build | test) newer has_catch2 libcatch2-dev 3 bookworm-backports ;;
esac

packages=''
for package in $wanted; do packages="$packages $(available "$package")" || exit 1; done
if [ -n "$packages" ]; then
  run apt-get install -y -q --no-install-recommends $packages || {
    tail -n 5 $log >&2
    die "apt-get install$packages failed"
  }
fi
# All at once, which is little more than half of the time; one by one where that fails, for the others must not miss one.
if [ -n "$optional" ] && root; then
  run apt-get install -y -q --no-install-recommends $optional ||
    for package in $optional; do
      run apt-get install -y -q --no-install-recommends "$package" ||
        echo "install_dependencies: no $package here" >&2
    done
  for package in $optional; do touch "$deps/tried_$package"; done
fi

# --- tables, below build/deps --------------------------------------------------------------------------------------
fetch_tables() {
  rm -rf $deps/fetched && mkdir -p $deps/fetched || return 1
  (cd $deps/fetched && apt-get -o APT::Sandbox::User=root download python3-sklearn) >>$log 2>&1 || return 1
  dpkg-deb --fsys-tarfile $deps/fetched/python3-sklearn_*.deb 2>>$log |
    tar -x -C $deps ./$tables/breast_cancer.csv ./$tables/iris.csv ./$tables/wine_data.csv ./$tables/digits.csv.gz \
      2>>$log || return 1
  rm -rf $deps/fetched
}
if [ -n "$tables" ]; then
  fetch_tables || echo "install_dependencies: no tables of python3-sklearn; the examples take other files" >&2
  touch $deps/tables_tried
fi

# --- newer headers, below build/deps -----------------------------------------------------------------------------
# own_apt SUITE TYPE COMMAND... - apt-get with a state of its own: its lists, cache and sources lie below build/deps/apt.
# $architecture is whose packages, where they are not this machine's.
architecture=''
own_apt() {
  state=$PWD/$deps/apt/$1
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/etc/parts"
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk '$3 == "main" && $2 !~ /-/ { print $1; exit }')
  [ -n "$mirror" ] || return 1
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  if [ -e $keyring ]; then options="[signed-by=$keyring] "; else options=''; fi
  echo "$2 $options$mirror $1 main" > "$state/etc/sources.list"
  : > "$state/status"
  shift 2
  own_apt_get() {
    apt-get -q -o Dir::State="$state" -o Dir::State::lists="$state/lists" \
      -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
      -o Dir::Etc::sourcelist="$state/etc/sources.list" -o Dir::Etc::sourceparts="$state/etc/parts" \
      -o Dir::Etc::preferencesparts="$state/etc/parts" -o Dir::Etc::preferences="$state/etc/none" \
      -o Acquire::Languages=none -o APT::Sandbox::User=root \
      ${architecture:+-o APT::Architecture=$architecture -o APT::Architectures=$architecture} "$@"
  }
  run own_apt_get update || return 1
  (cd "$state" && own_apt_get "$@") >>$log 2>&1
}
# unpack SUITE PACKAGE
unpack() {
  own_apt "$1" deb download "$2" || return 1
  for deb in "$state"/"$2"_*.deb; do run dpkg-deb -x "$deb" $deps || return 1; done
  rm -rf "$state"
}
unpack_catch2_source() {
  own_apt bookworm-backports deb-src source --download-only catch2 || return 1
  rm -rf $deps/src/catch2 && mkdir -p $deps/src/catch2
  run tar -x -f "$state"/catch2_*.orig.tar.* -C $deps/src/catch2 --strip-components=1 || return 1
  rm -rf "$state"
}
# unpack_zlib ARCHITECTURE TRIPLE - headers and archive, in folders of their own, for this machine's must not be those;
# from the next suite where a mirror does not have all of this architecture
unpack_zlib() {
  architecture=$1
  own_apt trixie deb download zlib1g-dev || own_apt forky deb download zlib1g-dev || return 1
  to=$deps/cross/$2/usr
  rm -rf "$to" && mkdir -p "$to/include" "$to/lib" "$state/unpacked" || return 1
  run dpkg-deb -x "$state"/zlib1g-dev_*.deb "$state/unpacked" || return 1
  mv "$state"/unpacked/usr/include/*.h "$to/include" || return 1
  mv "$state/unpacked/usr/lib/$2/libz.a" "$to/lib" || return 1
  rm -rf "$state"
}
for entry in $private; do
  unpack "${entry%/*}" "${entry#*/}" ||
    echo "install_dependencies: no ${entry#*/} from ${entry%/*} ($log); cmake will try to download its source" >&2
done
[ "$what" != cross ] || [ -e $deps/src/catch2/CMakeLists.txt ] || unpack_catch2_source ||
  echo "install_dependencies: no source of Catch2 ($log); cmake will try to download it" >&2
if [ "$what" = cross ]; then
  for entry in riscv64/riscv64-linux-gnu arm64/aarch64-linux-gnu; do
    has_zlib_for "${entry#*/}" || unpack_zlib "${entry%/*}" "${entry#*/}" ||
      echo "install_dependencies: no zlib for ${entry#*/} ($log); what reads compressed files is not tested there" >&2
  done
fi
