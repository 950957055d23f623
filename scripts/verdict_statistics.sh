#!/usr/bin/env bash
# verdict_statistics.sh FILE: median, 99% and largest of error_over_bound by type, and of error_over_sigma by backend, over
# the passing verdicts of a file of `attest check --json`, as Markdown.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,3p' "$0" >&2; exit 2; }
sorted() { # key of the number, awk that gives the group
  grep '"kind":"verdict"' "$1" | grep '"status":"pass"' | awk -v key="\"$2\":" "$3"' {
    at = index($0, key)
    if (!at) next
    value = substr($0, at + length(key)) + 0
    print group, value }' | sort -k1,1 -k2,2g |
    awk -v what="$2" '
      function text(x) { return x < 1 && sprintf("%.2g", x) == "1" ? "below 1" : sprintf("%.2g", x) }
      function row() {
        if (n) printf "| %s | %d | %s | %s | %s |\n", last, n, text(v[int((n + 1) / 2)]), text(v[int(0.99 * n + 0.5)]), text(v[n])
      }
      BEGIN { print "| " what " | verdicts | median | 99% | largest |\n|---|---|---|---|---|" }
      $1 != last { row(); n = 0; last = $1 }
      { v[++n] = $2 }
      END { row() }'
}
sorted "$1" error_over_bound '{ group = "f32"; if (match($0, /dtype=[a-z0-9]+/)) group = substr($0, RSTART + 6, RLENGTH - 6) }'
echo
sorted "$1" error_over_sigma '{ match($0, /"backend":"[^"]*"/); group = substr($0, RSTART + 11, RLENGTH - 12) }'
