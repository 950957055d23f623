#!/usr/bin/env bash
# oclgrind.sh ATTEST: both structures of the OpenCL kernel in oclgrind. A race, a read or write outside a buffer, or a
# branch on a value that nobody wrote is a line in its log; the log must be empty, and the results right.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Without optimisation: the simulator does not know every instruction of optimised code.
for kernel in cpu gpu; do
  ATTEST_OPENCL_KERNEL=$kernel XDG_CACHE_HOME=$work oclgrind --build-options -cl-opt-disable --data-races --uninitialized \
    --max-errors 10 --log "$work/log" "$1" check --suite-file "$here/branches.cases" --backend opencl --no-shrink \
    >"$work/out" || { cat "$work/out"; exit 1; }
  grep -q "Oclgrind Simulator" "$work/out" || { echo "not run in the simulator"; exit 1; }
  if [ -s "$work/log" ]; then
    echo "oclgrind on the $kernel kernel:"
    cat "$work/log"
    exit 1
  fi
  tail -n 1 "$work/out"
done
