#!/usr/bin/env bash
# cost_ratio.sh BACKEND ROUNDS CASE_A CASE_B: what case B costs in units of case A, both timed in turn on one machine.
# Prints the median of the ratios of neighbours, and their quartiles; a ? behind the median says that something disturbed
# some. Two threads; the program is that of build/, or of $ATTEST_BUILD. Ends with 1 where a case gets no speed.
set -euo pipefail
[ $# -eq 4 ] && [[ $2 =~ ^[1-9][0-9]*$ ]] || { sed -n '2,4p' "$0" >&2; exit 2; }
attest=${ATTEST_BUILD:-$(dirname "$0")/../build}/bin/attest
milliseconds() { # BACKEND CASE: with a ? behind them where they were disturbed
  local table speed status=0
  table=$("$attest" bench "$2" --threads 2 --backend "$1" --repetitions 3 --min-time 0.03) || status=$?
  speed=$(awk -v name="$1" '$1 == "backend" { speeds = 1; next } /^  steps, ms/ { speeds = 0 }
    speeds && $1 == name && $2 > 0 { print $2 (/x[?]/ ? "?" : "") }' <<<"$table")
  if [ "$status" = 0 ] && [ -n "$speed" ]; then
    echo "$speed"
    return
  fi
  case $status in
    0 | 1 | 3) ;;
    *) return "$status" ;;
  esac
  echo "$1 has no speed on $2$(sed -n "s/^  $1  *no speed//p" <<<"$table")" >&2
  return 1
}
ratios=() disturbed=0
for ((round = 0; round < $2; ++round)); do
  a=$(milliseconds "$1" "$3")
  b=$(milliseconds "$1" "$4")
  [[ $a$b != *\?* ]] || disturbed=$((disturbed + 1))
  ratios+=("$(awk -v a="${a%\?}" -v b="${b%\?}" 'BEGIN { print b / a }')")
done
printf '%s\n' "${ratios[@]}" | sort -g | awk -v disturbed="$disturbed" '{ r[NR] = $1 } END {
  printf "%.3f%s (quartiles %.3f to %.3f, %d rounds%s)\n", r[int((NR + 1) / 2)], disturbed ? "?" : "", r[int((NR + 3) / 4)],
    r[int((3 * NR + 3) / 4)], NR, disturbed ? ", " disturbed " of them disturbed" : "" }'
