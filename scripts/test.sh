#!/usr/bin/env bash
# Sets everything up and runs every test: a release build with all of them, builds with sanitizers for unit and smoke,
# and the readers under a fuzzer for a moment.
#
#   ./scripts/test.sh             everything
#   ./scripts/test.sh -L unit     arguments go to ctest; sanitizers and fuzzer are left out
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
attest_packages="$attest_packages $attest_test_packages"
[ $# -gt 0 ] || attest_packages="$attest_packages clang-14 clang-tidy-14 libclang-rt-14-dev libomp-14-dev"
attest_install

# Tests build copies of the project: what was compiled before is not compiled again. Paths are relative to the build.
export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR=$attest_build-ccache CCACHE_BASEDIR=$attest_root CCACHE_NOHASHDIR=1
# Two tests at a time share the cores, for each has as many threads as there are: those that wait for work must not spin.
export OMP_WAIT_POLICY=passive
run_tests() { # FOLDER [CTEST OPTION]...
  local folder=$1
  shift
  ctest --test-dir "$folder" --output-on-failure --no-tests=error -j 2 "$@"
}

# Every backend must be there: one that silently vanished would make its tests vanish too.
everything_on=(-DATTEST_BACKEND_EXAMPLE=ON -DATTEST_BACKEND_EIGEN=ON -DATTEST_BACKEND_XTENSOR=ON
  -DATTEST_BACKEND_OPENCL=ON -DATTEST_BACKEND_CLBLAST=ON -DATTEST_BACKEND_SIMD=ON -DATTEST_WERROR=ON
  -DATTEST_TEST_TOOLS=ON)
attest_make "$attest_build-test" "${everything_on[@]}"
attest_axe "$attest_build-test/axe"

# Before shards would each do it.
attest_warm "$attest_build-test/bin/attest"

if [ $# -gt 0 ]; then
  run_tests "$attest_build-test" "$@"
  exit
fi
run_tests "$attest_build-test"

# Address and undefined-behaviour sanitizers on everything but the drivers: OpenCL loads a compiler of its own, whose
# allocations are not ours to judge. Clang compiles their checks in half of GCC's time. Searches, statistics and timings
# are left out: they repeat for minutes what the other tests do once.
ATTEST_TARGETS="unit_tests suite_tests" attest_make "$attest_build-asan" --preset asan-ubsan
GTEST_FILTER='-PluginCheats.*:PluginBackend.NeedsLess*:Fuzz*:Shrink*:Emulator.*:*MaskOffsets*:Bench*:Roof*:Coverage.*:Deviation.*:SpeedComparison.*:GoogleSamples.*:AcceptedPart.*:ChangePoints.*' \
  run_tests "$attest_build-asan" -L 'unit|smoke' -E 'format|^every_'

# The thread sanitizer on the harness and the host backends. LLVM's OpenMP tells it what its barriers order (archer);
# GCC's doesn't. OpenBLAS is not instrumented: what happens inside is not judged.
ATTEST_TARGETS=suite_tests attest_make "$attest_build-tsan" --preset tsan
TSAN_OPTIONS=ignore_noninstrumented_modules=1 OMP_TOOL_LIBRARIES=/usr/lib/llvm-14/lib/libarcher.so \
  run_tests "$attest_build-tsan" -L 'smoke|bugs'

"$attest_root/scripts/fuzz_parsers.sh" 20000
