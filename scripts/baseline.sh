#!/usr/bin/env bash
# Measures the baseline of this machine for results/: the headline shapes and the shapes of real models.
#
#   ./scripts/baseline.sh NAME      writes results/NAME.json and results/NAME.txt
#
# Let nothing else run meanwhile; takes about ten minutes on 2 cores.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
[ $# -eq 1 ] || { echo "usage: $0 NAME, as in zen3-2-cores" >&2; exit 2; }
attest_program
out=$attest_root/results/$1
"$attest_build/bin/attest" bench "heads=8 seq=1024 dim=64" "heads=8 seq=1024 dim=64 causal" "heads=8 seq=1024 dim=128" \
  --suite workloads --repetitions 7 --json "$out.json.new" | tee "$out.txt.new"
mv "$out.json.new" "$out.json"
mv "$out.txt.new" "$out.txt"
