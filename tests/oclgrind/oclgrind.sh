#!/usr/bin/env bash
# oclgrind.sh ATTEST: both structures of the OpenCL kernel, and the kernels around CLBlast's, in oclgrind. A race, a read
# or write outside a buffer, or a branch on a value that nothing wrote is a line in its log; the log must be empty, and the
# results right.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
attest=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Without optimisation: the simulator does not know every instruction of optimised code. Each plan once: it keeps what it
# knows of memory by thread, and ends with a crash when another thread writes to a buffer.
XDG_CACHE_HOME=$work oclgrind "$attest" list backends | grep -q "Oclgrind Simulator" || { echo "no simulator"; exit 1; }
simulated() { # name, backend, file of cases, oclgrind option...
  local name=$1 backend=$2 cases=$3
  shift 3
  XDG_CACHE_HOME=$work oclgrind --build-options -cl-opt-disable --data-races "$@" --max-errors 10 --log "$work/log" \
    "$attest" check --suite-file "$cases" --backend "$backend" --no-shrink --once \
    >"$work/out" || { cat "$work/out"; exit 1; }
  if [ -s "$work/log" ]; then
    echo "oclgrind on $name:"
    cat "$work/log"
    exit 1
  fi
}

# Gradients keep numbers in buffers that only kernels write to. The simulator takes such a buffer for as long as the one
# that was released before it, and what lies behind that for unwritten: each of these lines has a process of its own.
forward=$work/forward.cases
grep -v '^pass=both' "$here/branches.cases" >"$forward"
mapfile -t gradients < <(grep '^pass=both' "$here/branches.cases")
((${#gradients[@]} > 0))
for kernel in cpu gpu; do
  export ATTEST_OPENCL_KERNEL=$kernel
  simulated "the $kernel kernel" opencl "$forward" --uninitialized
  tail -n 1 "$work/out"
  for line in "${gradients[@]}"; do
    echo "$line" >"$work/line.cases"
    simulated "the $kernel kernel, $line" opencl "$work/line.cases" --uninitialized
  done
  echo "${#gradients[@]} lines of gradients alone"
done
unset ATTEST_OPENCL_KERNEL
# clblast fills buffers on the device, and the simulator takes all but the first element of a fill for unwritten: values
# that nothing wrote can't be asked for here.
simulated "clblast" clblast "$here/branches.cases"
tail -n 1 "$work/out"
