#!/usr/bin/env bash
# bug_classes.sh ATTEST: what tests/BUG_CLASSES.md names is there. A case stands in the suite `bugs` under the row's number and
# passes, a unit test and a mistake exist, and every number that the suite or a mistake carries has a row.
set -euo pipefail
source "$(dirname "$0")/documents.sh"
attest=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root/tests"
: >"$work/named.cases"
wrong=$(
  while IFS='|' read -r _ number _ _ shown mistakes _; do
    number=${number// /}
    echo "$number" >>"$work/numbers"
    grep -oE '`[^`]+`' <<<"$shown" | tr -d '`' | while read -r name; do
      if [[ $name == *=* ]]; then
        awk -v name="$name" -v number="$number" '{ line = $0; sub(/ *#.*/, "", line) }
          line == name && $0 ~ ("# " number "( |$)") { found = 1 } END { exit !found }' cases/bugs.cases ||
          echo "$number: bugs.cases does not have it under this number: $name"
        echo "$name" >>"$work/named.cases"
      else
        grep -qE "^TEST(_F|_P)?\(${name%%.*}, ${name#*.}\)" unit/*.cpp || echo "$number: no test $name"
      fi
    done
    grep -oE '`[^`]+`' <<<"$mistakes" | tr -d '`' | while read -r name; do
      grep -qE "\"$name\", \"[^\"]*\(([0-9, ]*[ (])?$number[,)]" faulty/*.cpp || echo "$number: no mistake $name of this number"
    done
  done < <(sed '/^## Not covered/,$d' BUG_CLASSES.md | grep -E '^\| [0-9]+ \|')
  for number in $({ sed -n 's/^[^#].*# \([0-9]*\).*/\1/p' cases/bugs.cases
    grep -ohE '\([0-9, ]+\)"' faulty/*.cpp | grep -oE '[0-9]+'; } | sort -un); do
    grep -qxF "$number" "$work/numbers" || echo "no row for class $number"
  done
)
[ -z "$wrong" ] || { echo "$wrong" >&2; exit 1; }
"$attest" check --backend example --suite-file <(sort -u "$work/named.cases") >"$work/output" || { tail -n 20 "$work/output" >&2; exit 1; }
echo "bug classes: $(wc -l <"$work/numbers") rows; $(tail -n 1 "$work/output")"
