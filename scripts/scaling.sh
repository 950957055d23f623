#!/usr/bin/env bash
# scaling.sh BACKENDS CASE [THREADS...]: how each backend (comma separated) scales over threads; default 1, 2, 4, ... up to
# the cores. A process for each number, pinned to as many cores: OpenMP, OpenBLAS and PoCL take the size of their pools
# once, and none has more threads than cores. The program is build/bin/attest.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,4p' "$0" >&2; exit 2; }
attest=$(dirname "$0")/../build/bin/attest
backends=$1 line=$2
shift 2
counts=("$@")
if [ ${#counts[@]} = 0 ]; then
  for ((n = 1; n < $(nproc); n *= 2)); do counts+=("$n"); done
  counts+=("$(nproc)")
fi
for n in "${counts[@]}"; do
  OMP_NUM_THREADS=$n OPENBLAS_NUM_THREADS=$n POCL_MAX_PTHREAD_COUNT=$n "$attest" bench "$line" --backend "$backends" \
    --threads "$n" --pin | awk -v n="$n" '$1 == "backend" { speeds = 1; next } /^  steps, ms/ { speeds = 0 } /no speed/ { next }
      speeds && /^  [a-z]/ { print n, $1, $2 }'
done | awk '{ if (!($2 in first)) first[$2] = $1 * $3
  printf "%-10s %3d thread(s) %10.3f ms  speed-up %6.2f  efficiency %4.0f%%\n", $2, $1, $3, first[$2] / $3, 100 * first[$2] / $3 / $1 }'
