#!/usr/bin/env bash
# honest_speeds.sh [RUNS] [BUSY]: how often a benchmark takes the speed of a backend that is honest. RUNS (default 200)
# benchmarks of all backends, the last half of them beside BUSY (default: one for each core) processes that only spin.
# Ends with 1 when a single speed was lost, and prints the reasons: each backend has one in each case of each run. The
# program is that of build/, or of $ATTEST_BUILD.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
runs=${1:-200} busy=${2:-$(nproc)}
work=$(mktemp -d)
spinners=()
cleanup() {
  for pid in "${spinners[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
attest=$attest_build/bin/attest
cases=("heads=2 seq=128 dim=64" "seq=64 dim=16 causal" "heads=4 seq=1x1024 dim=64")
"$attest" list backends >"$work/backends"
backends=$(grep -vc ' not available: ' "$work/backends")
for n in $(seq "$runs"); do
  if [ "$n" = $((runs / 2 + 1)) ]; then
    for _ in $(seq "$busy"); do
      (while :; do :; done) &
      spinners+=($!)
    done
  fi
  status=0
  "$attest" bench "${cases[@]}" --threads 2 --repetitions 5 --min-time 0.02 --seed "$n" >>"$work/tables" || status=$?
  # 1 says that a speed was lost; anything else, that there was no benchmark.
  [ "$status" -le 1 ] || { echo "run $n ended with exit code $status" >&2; exit 1; }
done
expected=$((runs * ${#cases[@]} * backends))
speeds=$(awk '$1 == "backend" { speeds = 1; next } /^  steps, ms/ { speeds = 0 } /^  [a-z_]+ +no speed:/ { next }
  speeds && /^  [a-z]/ { ++count } END { print count + 0 }' "$work/tables")
grep 'no speed:' "$work/tables" | sed 's/[0-9.]* ms/... ms/g' | sort | uniq -c || true
echo "$runs runs, the last $((runs - runs / 2)) beside $busy spinning processes: $((expected - speeds)) of $expected speeds lost"
[ "$expected" -gt 0 ] && [ "$speeds" = "$expected" ]
