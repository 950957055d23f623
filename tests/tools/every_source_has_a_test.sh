#!/usr/bin/env bash
# every_source_has_a_test.sh [ROOT]: for each source x.cpp of the harness, the reference and what backends share there is
# tests/unit/x_test.cpp, which includes its header; or it is listed in tests/unit/tested_elsewhere.txt with what tests it.
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
list=tests/unit/tested_elsewhere.txt
status=0
complain() { echo "$*" >&2; status=1; }
has_a_test() { # SOURCE
  local test=tests/unit/$(basename "$1" .cpp)_test.cpp header=${1%.cpp}.h
  [ -f "$test" ] && { [ ! -f "$header" ] || grep -qF "#include \"$header\"" "$test"; }
}

declare -A elsewhere
while IFS='|' read -r place by why; do
  case $place in "" | "#"*) continue ;; esac
  place=${place// /} by=${by// /}
  elsewhere[$place]=unused
  [ -e "$by" ] || complain "$list: $place: $by is not there"
  [ -n "${why// /}" ] || complain "$list: $place: no reason"
  [ ! -f "$place" ] || ! has_a_test "$place" || complain "$list: $place has a test of its own"
done <"$list"

sources=0
for source in $(find reference harness backends/support -name '*.cpp' 2>/dev/null | sort); do
  [ -f "$source" ] || continue
  sources=$((sources + 1))
  listed=
  for place in "$source" "$(dirname "$source")/"; do
    [ -z "${elsewhere[$place]:-}" ] || { elsewhere[$place]=met listed=1; }
  done
  [ -n "$listed" ] || has_a_test "$source" ||
    complain "$source: no tests/unit/$(basename "$source" .cpp)_test.cpp that includes its header, and not in $list"
done
for place in "${!elsewhere[@]}"; do
  [ "${elsewhere[$place]}" = met ] || complain "$list: $place is not there"
done
[ "$status" -ne 0 ] || echo "$sources sources, each with a test"
exit $status
