#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# peers.sh - installs the libraries that the benchmarks compare with, as far as this Debian has them (root), and what
# draws their charts. Each is optional: its rows say that the peer is missing. libtorch brings some 500 MB of other
# libraries.
set -u
export DEBIAN_FRONTEND=noninteractive
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
