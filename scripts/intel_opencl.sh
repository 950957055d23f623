#!/usr/bin/env bash
# intel_opencl.sh [SUITE ...]: the OpenCL backends on Intel's CPU runtime beside PoCL; suites smoke and bugs by default.
#
# The runtime comes from PyPI into a folder of its own ($ATTEST_INTEL_OPENCL, by default ~/.cache/attest/intel-opencl):
# nothing of the system changes. Exit code 1 when a verdict fails. The program is build/bin/attest, or $ATTEST.
set -euo pipefail
attest=${ATTEST:-$(dirname "${BASH_SOURCE[0]}")/../build/bin/attest}
home=${ATTEST_INTEL_OPENCL:-${XDG_CACHE_HOME:-$HOME/.cache}/attest/intel-opencl}
[ $# -gt 0 ] || set -- smoke bugs
[ -x "$attest" ] || { echo "intel_opencl.sh: $attest is not built; run ./scripts/run.sh first" >&2; exit 2; }

if [ ! -e "$home/vendors/intel.icd" ]; then
  python3 -m pip --version > /dev/null 2>&1 ||
    { echo "intel_opencl.sh: pip is missing; apt-get install python3-pip" >&2; exit 2; }
  python3 -m pip install --quiet --no-warn-script-location --ignore-installed --prefix "$home" \
    intel-opencl-rt intel-cmplr-lib-rt
  mkdir -p "$home/vendors"
  find "$home" -name libintelocl.so > "$home/vendors/intel.icd.new"
  mv "$home/vendors/intel.icd.new" "$home/vendors/intel.icd"
fi

export OCL_ICD_VENDORS="$home/vendors"
export LD_LIBRARY_PATH="$home/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
"$attest" list backends | grep -E '^(opencl|clblast)' || true
failed=0
for suite in "$@"; do
  "$attest" check --suite "$suite" --backend opencl,clblast --device Intel || failed=1
done
exit $failed
