#!/usr/bin/env bash
# Sets everything up and does attest's main job: checks every backend against the reference, then compares their speed.
#
#   ./scripts/run.sh              the committed suites, then three benchmarks
#   ./scripts/run.sh CASE...      the same on case lines of your own
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
attest_program
attest=$attest_build/bin/attest
attest_warm "$attest"

if [ $# -gt 0 ]; then
  "$attest" check "$@"
  "$attest" bench "$@"
  exit
fi
echo
echo "== Right? Real-model activations, worked examples, every bug that shipped, and a bit of everything"
"$attest" check --suite captures --suite walkthroughs --suite bugs --suite smoke
echo
echo "== How fast? Only results that were right get a speed"
"$attest" bench --repetitions 5 "heads=8 seq=1024 dim=64" "heads=8 seq=1024 dim=64 causal" "batch=8 heads=12 seq=128 dim=64"
