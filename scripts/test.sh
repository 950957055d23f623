#!/usr/bin/env bash
# Sets everything up and runs every test: a release build with all of them, and one with sanitizers for unit and smoke.
#
#   ./scripts/test.sh             everything
#   ./scripts/test.sh -L unit     arguments go to ctest; the sanitizer build is left out
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
attest_install

# Every backend must be there: one that silently vanished would make its tests vanish too.
everything_on=(-DATTEST_BACKEND_EXAMPLE=ON -DATTEST_BACKEND_EIGEN=ON -DATTEST_BACKEND_XTENSOR=ON
  -DATTEST_BACKEND_OPENCL=ON -DATTEST_BACKEND_CLBLAST=ON -DATTEST_WERROR=ON)
attest_make "$attest_build-test" "${everything_on[@]}"

# Compiling CLBlast's kernels is slow the first time and cached afterwards: once, before shards would each do it.
echo "warming the OpenCL kernel caches"
"$attest_build-test/bin/attest" check --suite smoke --backend opencl,clblast | tail -1

if [ $# -gt 0 ]; then
  ctest --test-dir "$attest_build-test" --output-on-failure --no-tests=error "$@"
  exit
fi
ctest --test-dir "$attest_build-test" --output-on-failure --no-tests=error

# Address and undefined-behaviour sanitizers on everything but the drivers: OpenCL loads a compiler of its own, whose
# allocations are not ours to judge.
attest_make "$attest_build-asan" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DATTEST_SANITIZE=address,undefined \
  -DATTEST_BACKEND_OPENCL=OFF -DATTEST_BACKEND_CLBLAST=OFF
ctest --test-dir "$attest_build-asan" --output-on-failure --no-tests=error -L 'unit|smoke'
