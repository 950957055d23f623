#!/usr/bin/env bash
# install.sh [ENVIRONMENT...]: a virtual environment for each environments/*.lock, below $ATTEST_PEERS_ENVIRONMENTS (build/ beside
# this script), with attest in it. One by itself where runtimes of two libraries clash in a process. All take 20 GB,
# most of it PyTorch's, which is there three times.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${ATTEST_PEERS_ENVIRONMENTS:-$here/build}
mkdir -p "$folder/wheel"
[ $# -gt 0 ] || set -- $(cd "$here/environments" && ls -- *.lock | sed 's/\.lock$//')
if ! compgen -G "$folder/wheel/attest_attention-*.whl" >/dev/null; then
  # With all backends that can be built here: speeds.py times them beside the libraries.
  python3 -m pip wheel --quiet --no-deps --wheel-dir "$folder/wheel" "$here/../.." \
    --config-settings=cmake.define.ATTEST_BACKEND_XTENSOR=AUTO --config-settings=cmake.define.ATTEST_BACKEND_OPENCL=AUTO
fi
for environment in "$@"; do
  lock=$here/environments/$environment.lock
  [ -f "$lock" ] || { echo "install.sh: no environment $environment; there are: $(cd "$here/environments" && ls -- *.lock | tr '\n' ' ')" >&2; exit 2; }
  [ -x "$folder/$environment/bin/python" ] || python3 -m venv "$folder/$environment"
  # llama-cpp-python is compiled: without what reads images.
  CMAKE_ARGS=${CMAKE_ARGS:--DLLAVA_BUILD=OFF} "$folder/$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-deps -r "$lock"
  "$folder/$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$folder"/wheel/attest_attention-*.whl
  echo "$environment: $folder/$environment"
done
