#!/usr/bin/env bash
# other_machines.sh aarch64|clang: builds attest for another machine or by another compiler, and checks every host
# backend. aarch64: Debian's cross compiler, under qemu. clang: clang 14, with the quick unit tests.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh

host_backends=example,eigen,xtensor,simd

# The libraries come from packages of arm64, unpacked: their -dev packages conflict with those of this machine, and the
# machine's package system stays as it is.
unpack_sysroot() { # FOLDER
  local folder=$1 packages=$1.packages package
  [ ! -f "$folder/complete" ] || return 0
  rm -rf "$folder"
  mkdir -p "$folder" "$packages"/state/lists/partial "$packages"/cache/archives/partial
  : >"$packages/state/status"
  local apt=(apt-get -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
    -o Dir::State="$packages/state" -o Dir::State::status="$packages/state/status" -o Dir::Cache="$packages/cache"
    -o Debug::NoLocking=1)
  attest_progress "reading lists of arm64" "${apt[@]}" update
  attest_progress "fetching packages of arm64" "${apt[@]}" install -y --download-only --no-install-recommends \
    libc6-dev libgomp1 libstdc++6 libeigen3-dev libhwy-dev libxtensor-dev libxtensor-blas-dev libxsimd-dev libopenblas-pthread-dev \
    libbenchmark-dev libcli11-dev libfmt-dev libkainjow-mustache-dev libseccomp-dev nlohmann-json3-dev libpugixml-dev \
    libxxhash-dev
  for package in "$packages"/cache/archives/*.deb; do dpkg -x "$package" "$folder"; done
  # What Debian's alternatives would link.
  for package in libopenblas.so libopenblas.so.0 libblas.so libblas.so.3 liblapack.so liblapack.so.3; do
    [ ! -e "$folder/usr/lib/aarch64-linux-gnu/openblas-pthread/$package" ] ||
      ln -sf "openblas-pthread/$package" "$folder/usr/lib/aarch64-linux-gnu/$package"
  done
  rm -rf "$packages"
  touch "$folder/complete"
}

# check_suites PROGRAM...: fails unless in each suite something passes and nothing fails.
check_suites() {
  local suite
  for suite in smoke bugs; do "$@" check --suite "$suite" --backend "$host_backends" --threads 2; done
}

case "$*" in
  aarch64)
    attest_packages="cmake ninja-build g++-aarch64-linux-gnu qemu-user"
    attest_install
    folder=$PWD/build-aarch64
    mkdir -p "$folder"
    unpack_sysroot "$folder/sysroot"
    ATTEST_TARGETS=attest attest_make "$folder" -DCMAKE_TOOLCHAIN_FILE="$PWD/scripts/aarch64.cmake" \
      -DATTEST_SYSROOT="$folder/sysroot" -DATTEST_ARCH=armv8-a -DATTEST_TESTS=OFF \
      -DATTEST_UNITY=ON -DATTEST_MPI=OFF -DATTEST_BACKEND_{OPENCL,CLBLAST}=OFF \
      -DATTEST_BACKEND_{EXAMPLE,EIGEN,XTENSOR,SIMD}=ON
    check_suites qemu-aarch64 -L "$folder/sysroot" "$folder/bin/attest"
    ;;
  clang)
    attest_packages="$attest_packages $attest_test_packages"
    attest_install
    folder=$PWD/build-clang
    ATTEST_TARGETS="attest unit_tests" attest_make "$folder" -DCMAKE_CXX_COMPILER=clang++-14 -DATTEST_WERROR=ON \
      -DATTEST_UNITY=ON -DATTEST_MPI=OFF -DATTEST_BACKEND_{EXAMPLE,EIGEN,XTENSOR,SIMD}=ON
    ctest --test-dir "$folder" -R '^unit[.][0-9]' --output-on-failure
    check_suites "$folder/bin/attest"
    ;;
  *)
    echo "usage: ${0##*/} aarch64|clang" >&2
    exit 2
    ;;
esac
