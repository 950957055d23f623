#!/usr/bin/env bash
# fuzz_targets.sh SOURCE: every source of tests/fuzz is a target of the preset fuzz, also one that is new and named nowhere,
# and the sources that it includes are compiled with it, but not all of the harness. A compiler without libFuzzer is told.
set -euo pipefail
source "$(dirname "$0")/copy_project.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy_project "$1" "$work/attest"
cd "$work/attest"
fail() { echo "fuzz_targets: $*" >&2; exit 1; }
printf '#include "harness/plot/heat_map.h"\nextern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n' \
  >tests/fuzz/fresh.cpp

cmake -S . -B gcc -G Ninja $example_alone -DCMAKE_CXX_COMPILER=g++ -DATTEST_FUZZ=ON >"$work/log" 2>&1 && fail "g++ was accepted"
grep -q "ATTEST_FUZZ needs clang" "$work/log" || { cat "$work/log" >&2; fail "g++ was refused without a reason"; }

command -v clang++-14 >/dev/null || { echo "fuzz_targets: no clang++-14: its targets were not looked at"; exit 77; }
cmake --preset fuzz >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; fail "the preset can't be configured"; }
for source in tests/fuzz/*.cpp; do
  grep -q "tests/fuzz/$(basename "$source")$" <(ninja -C build-fuzz -t inputs fuzzers) || fail "$source is no target"
done
ninja -C build-fuzz -t inputs bin/fuzz_fresh >"$work/inputs"
grep -q 'harness/plot/heat_map.cpp$' "$work/inputs" || fail "what a target includes is not compiled"
grep -q 'harness/cases/case.cpp$' "$work/inputs" || fail "what that includes is not compiled"
grep 'harness/\(cli\|run\)/.*\.cpp$' "$work/inputs" && fail "all of the harness is compiled"
grep -qE -- '-fsanitize=address,undefined .*-fsanitize=fuzzer' <(ninja -C build-fuzz -t commands bin/fuzz_fresh) ||
  fail "targets are compiled without sanitizers"
echo "fuzz_targets: $(ls tests/fuzz/*.cpp | wc -l) targets, $(grep -c '\.cpp$' "$work/inputs") sources"
