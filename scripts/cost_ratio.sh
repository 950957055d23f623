#!/usr/bin/env bash
# cost_ratio.sh BACKEND ROUNDS CASE_A CASE_B: what case B costs in units of case A, both timed in turn on one machine.
# Prints the median of the ratios of neighbours, and their quartiles. Two threads; the program is build/bin/attest.
set -euo pipefail
[ $# -eq 4 ] || { sed -n '2,3p' "$0" >&2; exit 2; }
attest=$(dirname "$0")/../build/bin/attest
milliseconds() {
  "$attest" bench "$2" --threads 2 --backend "$1" --repetitions 3 --min-time 0.03 | awk -v name="$1" '$1 == name {print $2; exit}'
}
for ((round = 0; round < $2; ++round)); do
  echo "$(milliseconds "$1" "$3") $(milliseconds "$1" "$4")"
done | awk '{print $2 / $1}' | sort -n |
  awk '{r[NR] = $1} END {printf "%.3f (quartiles %.3f to %.3f, %d rounds)\n", r[int((NR + 1) / 2)], r[int((NR + 3) / 4)], r[int((3 * NR + 3) / 4)], NR}'
