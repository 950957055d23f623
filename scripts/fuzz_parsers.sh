#!/usr/bin/env bash
# fuzz_parsers.sh [RUNS]: the readers of case lines and of tensor files under libFuzzer with sanitizers, RUNS executions
# each (default 100,000). The corpora are the committed suites and golden files; findings stay in build-fuzz/.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
attest_packages="$attest_packages clang-14 libclang-rt-14-dev"
attest_install
runs=${1:-100000}
out=$attest_root/build-fuzz
mkdir -p "$out"
cd "$attest_root"
flags="-std=c++20 -O1 -g -I. -I$out -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined
  -DATTEST_VERSION=\"fuzz\" -DATTEST_SOURCE_DIR=\"$attest_root\" -DATTEST_DATA_DIR=\"$attest_root\""
reference=$(ls reference/*.cpp)
readers="harness/case.cpp harness/case_file.cpp harness/file_golden.cpp harness/index_tensors.cpp harness/safetensors.cpp
  harness/inputs.cpp harness/fill.cpp harness/guarded_outputs.cpp harness/machine.cpp"
cmake -DSOURCE="$attest_root" -DOUTPUT="$out/attest_build.h" -DDESCRIPTION=fuzz -P harness/build_description.cmake
build() { # target, sources
  local target=$1
  shift
  local newest
  newest=$(ls -t "tests/fuzz/$target.cpp" "$@" reference/*.h harness/*.h | head -n 1)
  [ "$out/$target" -nt "$newest" ] || clang++-14 $flags "tests/fuzz/$target.cpp" "$@" -o "$out/$target" -lfmt
}
build case_line $reference
build safetensors harness/safetensors.cpp
build case_file $reference $readers

# One file per committed line, and the small golden files.
rm -rf "$out/lines" "$out/files"
mkdir -p "$out/lines" "$out/files" "$out/found"
cat tests/cases/{smoke,bugs,linear}.cases | sed 's/#.*//' | grep -v '^ *$' | split -l 1 - "$out/lines/line"
cp tests/golden/onnx/attention_3d*.safetensors tests/golden/onnx/linear*.safetensors tests/golden/walkthroughs/*.safetensors "$out/files/"
cp -r tests/fuzz/regressions/. "$out/files/" 2>/dev/null || true
for target in case_line safetensors case_file; do
  corpus=$out/files
  longest=8192
  [ $target = case_line ] && corpus=$out/lines longest=300
  mkdir -p "$out/grown-$target"
  echo "$target: $runs executions"
  "$out/$target" -runs="$runs" -max_len=$longest -rss_limit_mb=4096 -timeout=20 -artifact_prefix="$out/found/$target-" \
    -print_final_stats=1 "$out/grown-$target" "$corpus" >"$out/$target.log" 2>&1 || { tail -n 40 "$out/$target.log"; exit 1; }
  grep -E "stat::number_of_executed_units|stat::average_exec" "$out/$target.log"
done
echo "no finding"
