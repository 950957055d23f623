#!/usr/bin/env bash
# Sets everything up and runs the tests.
#
#   ./scripts/test.sh               the quick tier: what a commit must not break, in minutes
#   ./scripts/test.sh --all         every test, under an hour
#   ./scripts/test.sh --part 2/6    the second of six parts of --all that take equally long
#   ./scripts/test.sh --list        which test is in which tier; with --all or --part, those that it would run
#   ./scripts/test.sh -L unit       other arguments go to ctest
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

tier=quick part=1/1 list='' arguments=()
wrong() { echo "test.sh: $*" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --all) tier=all ;;
    --part)
      tier=all part=${2:-}
      [[ $part =~ ^([1-9][0-9]?)/([1-9][0-9]?)$ ]] && [ "${BASH_REMATCH[1]}" -le "${BASH_REMATCH[2]}" ] ||
        wrong "--part $part: I/N is wanted, I from 1 to N, as in 2/6"
      shift
      ;;
    --list) list=1 ;;
    *) arguments=("$@"); break ;;
  esac
  shift
done
[ ${#arguments[@]} -eq 0 ] || { [ "$tier$list" = quick ] || wrong "--all, --part and --list stand alone"; tier=ctest; }

# Every backend must be there: one that silently vanished would make its tests vanish too.
build=$attest_build-test
options=(-DATTEST_UNITY=ON -DATTEST_WERROR=ON)
for backend in EXAMPLE EIGEN XTENSOR OPENCL CLBLAST SIMD; do options+=(-DATTEST_BACKEND_$backend=ON); done
attest_packages="$attest_packages $attest_test_packages"
if [ "$tier" != quick ]; then
  # The quick tier has fewer packages; a build that it configured looks for the others again.
  attest_packages="$attest_packages $attest_all_test_packages"
  grep -qs ATTEST_TEST_TOOLS:BOOL=ON "$build/CMakeCache.txt" || rm -f "$build/build.ninja"
  options+=(-DATTEST_MPI=ON -DATTEST_TEST_TOOLS=ON)
elif [ ! -f "$build/build.ninja" ]; then
  options+=(-DATTEST_MPI=OFF)
fi
attest_install >&2
attest_configure "$build" "${options[@]}" >&2

# The tests of a tier or a part, a line each. Parts are filled with the longest tests first, each into the part that has
# least with it, so that they take equally long: the targets that a test needs and the part has not built count, too.
chosen_tests() {
  awk -v wanted="$tier" '$1 ~ /^(build|quick)$/ || $1 == (wanted == "quick" ? "share" : "all")' "$build/tests/tiers.txt" |
    sort -k 2,2nr -k 3,3 | awk -v part="${part%/*}" -v parts="${part#*/}" '
      $1 == "build" { build[$3] = $2; next }
      { test[++tests] = $0 }
      END {
        for (t = 1; t <= tests; ++t) {
          words = split(test[t], word)
          for (n = 1; n <= parts; ++n) {
            with[n] = sum[n] + word[2]
            for (w = 4; w <= words; ++w) if (!((n, word[w]) in built)) with[n] += build[word[w]]
            if (n == 1 || with[n] < with[least]) least = n
          }
          for (w = 4; w <= words; ++w) built[least, word[w]] = 1
          sum[least] = with[least]
          if (least == part) print word[3]
        }
      }'
}
if [ -n "$list" ]; then
  if [ "$tier" = quick ]; then
    awk '$1 != "build" {
      tier = $1 == "share" ? "quick, a share" : $1 == "all" ? "--all" : $1; printf "%-14s %5d s  %s\n", tier, $2, $3 }' \
      "$build/tests/tiers.txt" | sort
    ! grep -qs 'ATTEST_MPI:[A-Z]*=OFF' "$build/CMakeCache.txt" ||
      echo "test.sh: this build is without MPI, whose tests are of --all: ./scripts/test.sh --all --list has them" >&2
  else
    chosen_tests
  fi
  exit
fi

ATTEST_TARGETS=quick_tests attest_make "$build"
if [ "$tier" != quick ]; then attest_axe "$build/axe"; fi
# Before shards would each do it.
attest_warm "$build/bin/attest"

# Tests of --all build copies of the project: what one compiled is not compiled again by the next. Paths are relative to
# the build.
export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR=$attest_build-ccache CCACHE_BASEDIR=$attest_root CCACHE_NOHASHDIR=1
[ "$tier" != quick ] || unset CMAKE_CXX_COMPILER_LAUNCHER
# Two tests at a time share the cores, for each has as many threads as there are: those that wait for work must not spin.
export OMP_WAIT_POLICY=passive OPENBLAS_THREAD_TIMEOUT=20
run=(ctest --test-dir "$build" --output-on-failure --no-tests=error -j 2)
if [ "$tier" = ctest ]; then exec "${run[@]}" "${arguments[@]}"; fi
names=$(chosen_tests | sed 's/[.]/[.]/g' | paste -sd '|')
exec "${run[@]}" -R "^($names)\$"
