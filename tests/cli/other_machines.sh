#!/usr/bin/env bash
# other_machines.sh: scripts/other_machines.sh names what it knows, in one line, where it is asked for nothing or for
# something else.
set -uo pipefail
cd "$(dirname "$0")/../.."
failures=0
complain() { echo "other_machines: $*" >&2; failures=$((failures + 1)); }
for wrong in "" riscv64 "aarch64 clang"; do
  read -ra words <<<"$wrong"
  status=0
  output=$(./scripts/other_machines.sh ${words[@]+"${words[@]}"} 2>&1 </dev/null) || status=$?
  [ "$status" = 2 ] || complain "'$wrong': exit code $status"
  [ "$output" = "usage: other_machines.sh aarch64|clang" ] || complain "'$wrong' printed: $output"
done
exit $((failures > 0))
