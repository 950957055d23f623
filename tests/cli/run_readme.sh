#!/usr/bin/env bash
# run_readme.sh ATTEST: every `attest ...` command in the README runs and ends with exit code 0.
set -uo pipefail
attest_path=$1
export attest_path
attest() { "$attest_path" "$@"; }
export -f attest
readme=$(cd "$(dirname "$0")/../.." && pwd)/README.md
cd "$(dirname "$readme")" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OUT=$work
passed=0 failed=0
while IFS= read -r command; do
  if output=$(bash -c "$command" 2>&1); then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "failed: $command"
    echo "$output" | tail -5
  fi
done < <(sed -n 's/^    \(attest .*\)$/\1/p' "$readme" | sed 's/ *#.*$//')
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
