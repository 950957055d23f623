#!/usr/bin/env bash
# fuzz_parsers.sh [RUNS]: every reader under libFuzzer with sanitizers, RUNS executions each (default 100,000): case
# lines, tensor files, tensor files as cases, results. The corpora are committed suites, golden files, results and what
# was found before (tests/fuzz/regressions); findings stay in build-fuzz/found.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
attest_packages="$attest_packages clang-14 libclang-rt-14-dev"
attest_install
runs=${1:-100000}
out=$attest_root/build-fuzz
mkdir -p "$out"
cd "$attest_root"
flags="-std=c++20 -O2 -g1 -I. -I$out -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
  -fsanitize-coverage-ignorelist=tests/fuzz/coverage_ignore.txt
  -DATTEST_VERSION=\"fuzz\""
reference=$(ls reference/*.cpp)
readers="harness/cases/case.cpp harness/cases/case_file.cpp harness/cases/file_golden.cpp harness/cases/fill.cpp
  harness/cases/guard_pattern.cpp harness/cases/index_tensors.cpp harness/cases/inputs.cpp harness/cases/memory.cpp
  harness/cases/safetensors.cpp harness/cases/tensor_storage.cpp harness/base/machine.cpp harness/base/output_file.cpp"
cmake -DSOURCE="$attest_root" -DOUTPUT="$out/attest_build.h" -DDESCRIPTION=fuzz -P harness/build_description.cmake
build() { # target, sources
  local target=$1
  shift
  local newest
  newest=$(ls -t "tests/fuzz/$target.cpp" "$@" reference/*.h harness/*/*.h | head -n 1)
  [ "$out/$target" -nt "$newest" ] || clang++-14 $flags "tests/fuzz/$target.cpp" "$@" -o "$out/$target" -lfmt
}
# The two large ones side by side.
build case_file $reference $readers &
large=$!
build case_line $reference
build safetensors harness/cases/safetensors.cpp harness/base/output_file.cpp
build results harness/speed/benchmark_file.cpp harness/report/earlier_run.cpp harness/report/verdict_json.cpp \
  harness/base/machine.cpp
wait $large

# One file per committed line, the small golden files, the head of each result, and what was found before.
seeds=$out/seeds
rm -rf "$seeds"
mkdir -p "$out/found" "$seeds"/{case_line,safetensors,case_file,results}
cat tests/cases/{smoke,bugs,linear}.cases | sed 's/#.*//' | grep -v '^ *$' | split -l 1 -a 3 - "$seeds/case_line/line"
cp tests/golden/onnx/attention_3d*.safetensors tests/golden/onnx/linear*.safetensors tests/golden/walkthroughs/*.safetensors \
  "$seeds/safetensors"
cp "$seeds"/safetensors/* "$seeds/case_file"
cp tests/fuzz/seeds/* "$seeds/results"
for target in case_line safetensors case_file results; do
  cp tests/fuzz/regressions/$target-* "$seeds/$target" 2>/dev/null || true
done
declare -A longest=([case_line]=300 [safetensors]=8192 [case_file]=8192 [results]=2048)
for target in case_line safetensors case_file results; do
  mkdir -p "$out/grown-$target"
  echo "$target: $runs executions"
  "$out/$target" -runs="$runs" -max_len=${longest[$target]} -rss_limit_mb=4096 -timeout=20 \
    -artifact_prefix="$out/found/$target-" -print_final_stats=1 "$out/grown-$target" "$seeds/$target" \
    >"$out/$target.log" 2>&1 || { tail -n 40 "$out/$target.log"; exit 1; }
  grep -E "stat::number_of_executed_units|stat::average_exec" "$out/$target.log"
done
echo "no finding"
