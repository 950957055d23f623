#!/usr/bin/env bash
# names.sh: every key, flag, fill and name that the case language has stands in harness/CASES.md, and every status of a verdict
# and exit code in harness/VERDICTS.md.
set -euo pipefail
source "$(dirname "$0")/documents.sh"
cd "$root"
missing=0 names=0
expect() { # DOCUMENT NAME
  names=$((names + 1))
  markdown code "$1" | cut -f 2 | grep -qE -- "(^|[^a-z_.])${2//./\\.}([^a-z_.]|\$)" || { echo "$1 does not say what $2 is" >&2; missing=1; }
}
# Keys and flags as the parser defines them; fills and names as their tables hold them.
for name in $(grep -ohE '\b(key|flag)\("[a-z.]+"' reference/case_line.cpp | grep -oE '"[a-z.]+"' | tr -d '"' | sort -u) \
  $(sed -n '/^const std::vector<FillName>& /,/^}/p' reference/case_line.cpp | grep -oE '"[a-z]+"' | tr -d '"' | sort -u) \
  $(sed -n '/k\(Op\|Layout\|Output\)Names = {/,/}/p' reference/problem.h | grep -oE '"[a-z_]+"' | tr -d '"' | sort -u); do
  expect harness/CASES.md "$name"
done
for tensor in q k v out mask; do
  for suffix in strides offset; do expect harness/CASES.md "$tensor.$suffix"; done
done
statuses=$(git grep -hE 'names\[\] = \{"pass"' -- harness 2>/dev/null || grep -rhE 'names\[\] = \{"pass"' harness)
for name in $(grep -oE '"[a-z]+"' <<<"$statuses" | tr -d '"'); do expect harness/VERDICTS.md "$name"; done
[ "$names" -gt 60 ] || { echo "names.sh found $names names only" >&2; exit 1; }
echo "names: $names, all described"
exit $missing
