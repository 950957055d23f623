#!/usr/bin/env bash
# deep.sh [SHARD]: the suite deep, every pair of classes of sizes and option values, on all backends that are built; SHARD is
# i/n. Verdicts go to deep-i.jsonl.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
shard=${1:-1/1}
"$attest_build/bin/attest" check --suite deep --shard "$shard" --isolate --json "deep-${shard%/*}.jsonl"
