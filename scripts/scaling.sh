#!/usr/bin/env bash
# scaling.sh BACKENDS CASE [THREADS...]: how each backend (comma separated) scales over threads; default 1, 2, 4, ... up to
# the cores. A process for each number, pinned to as many cores: OpenMP, OpenBLAS and PoCL take the size of their pools
# once, and none has more threads than cores. A ? marks what was disturbed, or is held against what was. The program is that
# of build/, or of $ATTEST_BUILD.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
attest=${ATTEST_BUILD:-$(dirname "$0")/../build}/bin/attest
backends=$1 line=$2
shift 2
counts=("$@")
if [ ${#counts[@]} = 0 ]; then
  for ((n = 1; n < $(nproc); n *= 2)); do counts+=("$n"); done
  counts+=("$(nproc)")
fi
for n in "${counts[@]}"; do
  OMP_NUM_THREADS=$n OPENBLAS_NUM_THREADS=$n POCL_MAX_PTHREAD_COUNT=$n "$attest" bench "$line" --backend "$backends" \
    --threads "$n" --pin | awk -v n="$n" '$1 == "backend" { speeds = 1; next } /^  steps, ms/ { speeds = 0 }
      /^  [a-z_]+ +no speed/ { print n, $1, "-", $0; next }
      speeds && /^  [a-z]/ { print n, $1, $2, (/x[?]/ ? "?" : "") }'
done | awk '$3 == "-" { n = $1; name = $2; sub(/.*no speed/, "no speed"); printf "%-10s %3d thread(s)  %s\n", name, n, $0; next }
  { if (!($2 in first)) { first[$2] = $1 * $3; doubt[$2] = $4 }
  mark = $4 == "" ? doubt[$2] : $4
  printf "%-10s %3d thread(s) %10.3f ms%s speed-up %6.2f%s efficiency %4.0f%%%s\n", $2, $1, $3, $4 == "" ? " " : $4,
    first[$2] / $3, mark == "" ? " " : mark, 100 * first[$2] / $3 / $1, mark }'
