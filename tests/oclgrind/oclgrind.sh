#!/usr/bin/env bash
# oclgrind.sh ATTEST: both structures of the OpenCL kernel, and the kernels around CLBlast's, in oclgrind. A race, a read
# or write outside a buffer, or a branch on a value that nothing wrote is a line in its log; the log must be empty, and the
# results right.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Without optimisation: the simulator does not know every instruction of optimised code. Each plan once: it keeps what it
# knows of memory by thread, and ends with a crash when another thread writes to a buffer.
simulated() { # name, backend, oclgrind option...
  local name=$1 backend=$2
  shift 2
  XDG_CACHE_HOME=$work oclgrind --build-options -cl-opt-disable --data-races "$@" --max-errors 10 --log "$work/log" \
    "$attest" check --suite-file "$here/branches.cases" --backend "$backend" --no-shrink --once \
    >"$work/out" || { cat "$work/out"; exit 1; }
  grep -q "Oclgrind Simulator" "$work/out" || { echo "not run in the simulator"; exit 1; }
  if [ -s "$work/log" ]; then
    echo "oclgrind on $name:"
    cat "$work/log"
    exit 1
  fi
  tail -n 1 "$work/out"
}

attest=$1
ATTEST_OPENCL_KERNEL=cpu simulated "the cpu kernel" opencl --uninitialized
ATTEST_OPENCL_KERNEL=gpu simulated "the gpu kernel" opencl --uninitialized
# clblast fills buffers on the device, and the simulator takes all but the first element of a fill for unwritten: values
# that nothing wrote can't be asked for here.
simulated "clblast" clblast
