#!/usr/bin/env bash
# fuzz_parsers.sh [RUNS]: every source of tests/fuzz under libFuzzer with sanitizers, RUNS executions each (default
# 100,000). The corpora are committed suites, golden files, tests/fuzz/seeds/<target>, and what was found before
# (tests/fuzz/regressions/<target>-*); findings stay in build-fuzz/found.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
attest_packages="$attest_packages clang-14 libclang-rt-14-dev"
attest_install
runs=${1:-100000}
out=$attest_build-fuzz
cd "$attest_root"
ATTEST_TARGETS=fuzzers attest_make "$out" --preset fuzz

# seeds TARGET INTO: one file per committed line, the small golden files; other targets have theirs in tests/fuzz/seeds.
seeds() {
  case $1 in
    case_line) cat tests/cases/{smoke,bugs,linear}.cases | sed 's/#.*//' | grep -v '^ *$' | split -l 1 -a 3 - "$2/line" ;;
    safetensors | case_file)
      cp tests/golden/onnx/attention_3d*.safetensors tests/golden/onnx/linear*.safetensors \
        tests/golden/walkthroughs/*.safetensors "$2" ;;
  esac
  cp tests/fuzz/seeds/"$1"/* tests/fuzz/regressions/"$1"-* "$2" 2>/dev/null || true
}
# Bytes of an input; 4096 for others.
declare -A longest=([case_line]=300 [safetensors]=8192 [case_file]=8192 [results]=2048)

rm -rf "$out/seeds"
mkdir -p "$out/found"
for source in tests/fuzz/*.cpp; do
  target=$(basename "$source" .cpp)
  mkdir -p "$out/grown-$target" "$out/seeds/$target"
  seeds "$target" "$out/seeds/$target"
  echo "$target: $runs executions from $(ls "$out/seeds/$target" | wc -l) seeds"
  "$out/bin/fuzz_$target" -runs="$runs" -max_len="${longest[$target]:-4096}" -rss_limit_mb=4096 -timeout=20 \
    -artifact_prefix="$out/found/$target-" -print_final_stats=1 "$out/grown-$target" "$out/seeds/$target" \
    >"$out/$target.log" 2>&1 || { tail -n 40 "$out/$target.log"; exit 1; }
  grep -E "stat::number_of_executed_units|stat::average_exec" "$out/$target.log"
done
echo "no finding"
