#!/usr/bin/env bash
# honest_speeds.sh [RUNS] [BUSY]: how often a benchmark takes the speed of a backend that is honest. RUNS (default 200)
# benchmarks of all backends, the last half of them beside BUSY (default: one for each core) processes that only spin.
# Ends with 1 when a single speed was lost, and prints the reasons.
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
for n in $(seq "$runs"); do
  if [ "$n" = $((runs / 2 + 1)) ]; then
    for _ in $(seq "$busy"); do
      (while :; do :; done) &
      spinners+=($!)
    done
  fi
  "$attest_build/bin/attest" bench "heads=2 seq=128 dim=64" "seq=64 dim=16 causal" "heads=4 seq=1x1024 dim=64" --threads 2 \
    --repetitions 5 --min-time 0.02 --seed "$n" >>"$work/tables" || true
done
speeds=$(grep -c '[0-9]x' "$work/tables" || true)
lost=$(grep -c 'no speed:' "$work/tables" || true)
grep 'no speed:' "$work/tables" | sed 's/[0-9.]* ms/... ms/g' | sort | uniq -c || true
echo "$runs runs, the last $((runs - runs / 2)) beside $busy spinning processes: $lost speeds lost"
[ "$speeds" -gt 0 ] && [ "$lost" = 0 ]
