#!/usr/bin/env bash
# no_false_alarm.sh RANDOM_LINES ATTEST COUNT SEED: correct backends pass every random line.
set -euo pipefail
cases=$(mktemp --suffix=.cases)
trap 'rm -f "$cases"' EXIT
"$1" "$3" "$4" >"$cases"
"$2" check --suite-file "$cases"
