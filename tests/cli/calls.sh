#!/usr/bin/env bash
# calls.sh BUILD: each line of the suite `calls` fails for the wrong backend that stands behind it, and is in the guide.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
lines=0
while IFS= read -r line; do
  wrong=${line##*# wrong: }
  call=$(sed 's/ *#.*//' <<<"$line")
  grep -qF "\`$call\`" harness/how-to/serving.md || { echo "calls: the guide has no line $call" >&2; exit 1; }
  status=0
  "$build/bin/attest" check --plugin "$build/tests/libfaulty_plugin.so" --backend "$wrong" --no-shrink "$call" >/dev/null || status=$?
  [ "$status" = 1 ] || { echo "calls: exit code $status of $wrong on $call" >&2; exit 1; }
  lines=$((lines + 1))
done < <(grep '# wrong: ' tests/cases/calls.cases)
[ "$lines" = 14 ] || { echo "calls: $lines lines name a wrong backend, not 14" >&2; exit 1; }
