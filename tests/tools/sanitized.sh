#!/usr/bin/env bash
# sanitized.sh WHAT: builds with sanitizers what the test needs, and runs it.
#
#   address smoke   the suite smoke on the host backends, with the address and undefined-behaviour sanitizers
#   address unit    unit tests and more suites with the same
#   thread          the suites smoke and bugs on the host backends, with the thread sanitizer
#
# OpenCL is left out: its driver loads a compiler, whose allocations are not ours to judge.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/setup.sh"
unset CMAKE_CXX_COMPILER_LAUNCHER
# LLVM's OpenMP keeps what it allocated for a thread that ended.
leaks=$(mktemp)
trap 'rm -f "$leaks"' EXIT
echo "leak:libomp.so" >"$leaks"
export LSAN_OPTIONS=suppressions=$leaks:print_suppressions=0
host_backends=example,eigen,simd,xtensor
check() { # FOLDER SUITE...
  local folder=$1 suites=()
  for suite in "${@:2}"; do suites+=(--suite "$suite"); done
  "$folder/bin/attest" check "${suites[@]}" --backend $host_backends --require $host_backends --threads 2 --color never
}
# The ways that backends take on other processors.
check_other_ways() { # FOLDER SUITE...
  ATTEST_SIMD_TARGET=avx2 host_backends=simd check "$@"
  ATTEST_SIMD_TARGET=sse4 host_backends=simd check "$@"
  OPENBLAS_CORETYPE=Haswell host_backends=xtensor check "$@"
}
case "$*" in
  "address smoke")
    ATTEST_TARGETS=attest attest_make "$attest_build-asan" --preset asan-ubsan
    check "$attest_build-asan" smoke
    ;;
  "address unit")
    # Searches, statistics and timings are left out: they repeat for minutes what the other tests do once.
    ATTEST_TARGETS="attest unit_tests" attest_make "$attest_build-asan" --preset asan-ubsan
    "$attest_build-asan/tests/unit_tests" --gtest_brief=1 --gtest_filter="-$(tr '\n' ':' <<'END'
PluginCheats.*
PluginBackend.NeedsLess*
Fuzz*
Shrink*
Emulator.*
*MaskOffsets*
Bench*
Roof*
Coverage.*
Deviation.*
SpeedComparison.*
GoogleSamples.*
AcceptedPart.*
Axes.*
Drawn.*
FarStrides.RandomCases*
FlatCall.CarriesEveryCall*
KnownMistakes.NameWhat*
Options.AreDrawn*
RandomCase.ComesBy*
RightIf.*
END
)"
    check "$attest_build-asan" walkthroughs bugs
    check_other_ways "$attest_build-asan" smoke
    ;;
  thread)
    # LLVM's OpenMP tells the sanitizer what its barriers order (archer); GCC's doesn't. OpenBLAS is not instrumented:
    # what happens inside is not judged.
    export TSAN_OPTIONS=ignore_noninstrumented_modules=1 OMP_TOOL_LIBRARIES=/usr/lib/llvm-14/lib/libarcher.so
    ATTEST_TARGETS=attest attest_make "$attest_build-tsan" --preset tsan
    check "$attest_build-tsan" smoke bugs
    check_other_ways "$attest_build-tsan" smoke bugs
    ;;
  *) echo "sanitized.sh: address smoke, address unit or thread is wanted" >&2; exit 2 ;;
esac
