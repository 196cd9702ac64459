#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# peers.sh [newer] - installs the libraries that the benchmarks compare with, as far as this Debian has them (root), and
# what draws their charts. Each is optional: its rows say that the peer is missing. libtorch brings some 500 MB of other
# libraries. With `newer`: libtorch, oneDNN and OpenBLAS in newer versions than Debian's from Python's packages, below
# build/peers (2 GB), where the benchmarks' build looks first.
set -u
cd "$(dirname "$0")/.."
export DEBIAN_FRONTEND=noninteractive
if [ "${1:-}" = newer ]; then
  # libtorch_cpu.so of this package asks for two of CUDA's libraries, whether there is a GPU or not.
  python3 -m venv build/peers && exec build/peers/bin/python -m pip install --quiet --no-deps torch==2.11.0 \
    onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0 scipy-openblas32==0.3.34.481.3 \
    'nvidia-cuda-runtime~=13.0.0' 'nvidia-cuda-cupti~=13.0.0'
  exit 1
fi
missing=''
for package in libopenblas-dev libeigen3-dev libdnnl-dev libxsmm-dev libtorch-dev python3-matplotlib; do
  if dpkg-query -W -f '${Status}' $package 2>/dev/null | grep -q '^install ok'; then
    echo "peers: $package is here"
  else
    missing="$missing $package"
  fi
done
[ -n "$missing" ] || exit 0
apt-get update -q >/dev/null 2>&1 || echo 'peers: apt-get update failed; going on with the lists there are'
for package in $missing; do
  if apt-get install -y -q --no-install-recommends $package >/dev/null 2>&1; then
    echo "peers: $package installed"
  else
    echo "peers: no $package here, its rows will be without a peer"
  fi
done
