#!/usr/bin/env bash
# audit.sh RANDOM_LINES AUDIT COUNT SEED: the small ones of COUNT random lines against MPFR.
set -euo pipefail
cases=$(mktemp --suffix=.cases)
trap 'rm -f "$cases"' EXIT
"$1" "$3" "$4" >"$cases"
"$2" "$cases"
