#!/usr/bin/env bash
# Makes pages of real results, as large as they come, opens them in a browser as the test `page` does, and writes pictures of
# them: to look at after a change of a page.
#
#   ./scripts/pages.sh FOLDER [BUILD]      BUILD: a build with the tests, else build-test
#
# Of the matrix on every backend, wrong backends, the committed workloads, their comparison with those of an older commit,
# and a sweep. Takes some ten minutes on 2 cores; results that the folder has already are not made again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
mkdir -p "$1"
folder=$(realpath "$1") build=$(realpath "${2:-$attest_root/build-test}")
attest=$build/bin/attest results=$attest_root/results
cd "$folder"
bench() { "$attest" bench "$@" --threads 1 --repetitions 5 --min-time 0.02 >>bench.txt; }

[ -e matrix.jsonl ] || "$attest" check --suite matrix --no-shrink -q --json matrix.jsonl
[ -e wrong.jsonl ] || "$attest" check --suite bugs --suite smoke --plugin "$build/tests/libfaulty_plugin.so" -q --json wrong.jsonl || [ $? = 1 ]
[ -e sweep.json ] || bench "heads=2 dim=64" "heads=2 dim=32 causal" --sweep seq=64..512 --backend eigen,simd --json sweep.json
"$attest" compare "$results/zen3-2-cores.json" "$results/avx512-2-cores.json" --json compared.json >compared.txt || [ $? = 1 ]

for page in matrix wrong; do "$attest" report $page.jsonl --out $page.html; done
"$attest" report "$results/avx512-2-cores.json" --out workloads.html
"$attest" report sweep.json --out sweep.html
"$attest" report compared.json --out compared.html
/usr/bin/python3 "$attest_root/tests/page/page_test.py" "$attest" "$build/tests" "$build/axe/axe.min.js" \
  matrix.html wrong.html workloads.html sweep.html compared.html
echo "look at the pictures in $folder"
