#!/usr/bin/env bash
# false_alarms.sh [FILES]: how often `attest compare` calls the same program slower than itself. FILES (default 40)
# benchmark files are measured one after another and compared: neighbours as two files, and all of them as two folders
# measured in turn, neighbours dealt to either folder 20 times over.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
files=${1:-40}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
attest=$attest_build/bin/attest
for n in $(seq "$files"); do
  "$attest" bench "heads=4 seq=256 dim=64" "heads=2 seq=128 dim=128 causal" "heads=8 seq=1x2048 dim=64" "seq=512 dim=64" \
    --backend eigen,xtensor,opencl --threads 2 --repetitions 15 --min-time 0.01 --json "$work/$n.json" >/dev/null
done
count() { # what
  grep -E "^(faster|slower|same|ambiguous) " | awk -v what="$1" '{ ++count[$1]; ++all } END {
    printf "%s: %d comparisons of A with A: %d slower, %d faster, %d same, %d ambiguous\n", what, all, count["slower"],
      count["faster"], count["same"], count["ambiguous"] }'
}
for margin in 0.05 0.10; do
  for n in $(seq 1 2 $((files - 1))); do
    "$attest" compare "$work/$n.json" "$work/$((n + 1)).json" --margin $margin || true
  done | count "two files, margin $margin"
  for trial in $(seq 20); do
    RANDOM=$trial
    rm -rf "$work/old" "$work/new"
    mkdir "$work/old" "$work/new"
    for n in $(seq 1 2 $((files - 1))); do
      first=old second=new
      [ $((RANDOM % 2)) = 0 ] || first=new second=old
      cp "$work/$n.json" "$work/$first/$n.json"
      cp "$work/$((n + 1)).json" "$work/$second/$n.json"
    done
    "$attest" compare "$work/old" "$work/new" --margin $margin || true
  done | count "two folders of $((files / 2)), margin $margin"
done
