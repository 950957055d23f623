#!/usr/bin/env bash
# python.sh SOURCE [CMAKE -D OPTION]...: `pip install .` into a fresh virtual environment, then its tests from another
# folder. The compiler cache makes the build one of links: a build folder beside that of the other tests, one compiler's
# name for both. $ATTEST_TEST_PYTHON is the interpreter; Debian's own otherwise.
set -euo pipefail
source=$(cd "$1" && pwd)
shift
python=${ATTEST_TEST_PYTHON:-/usr/bin/python3}
"$python" -c 'import venv, ensurepip' 2>/dev/null || { echo "$python has no venv: install python3-venv" >&2; exit 77; }
folder=$(mktemp -d)
build=$source/build-python
trap 'rm -rf "$folder"' EXIT
python3() { "$python" "$@"; }
cd "$folder"
python3 -m venv venv
options=(--config-settings=build-dir="$build" --config-settings=cmake.define.ATTEST_WERROR=ON)
for option in "$@"; do options+=(--config-settings=cmake.define."${option#-D}"); done
start=$SECONDS
export CXX=${CXX:-/usr/bin/c++} PIP_DISABLE_PIP_VERSION_CHECK=1
(cd "$source" && "$folder"/venv/bin/pip install . "${options[@]}" >"$folder/pip.log" 2>&1) ||
  { tail -n 60 "$folder/pip.log" >&2; exit 1; }
venv/bin/pip install -q ml_dtypes mypy onnx pytest pytest-xdist pyyaml
echo "installed in $((SECONDS - start)) s"

# Nothing of the source tree is needed from here on.
mkdir "$folder/pages"
cp "$source"/harness/python/*.md "$source/harness/TUTORIAL.md" "$source"/harness/how-to/{python_callable,model,onnx}.md "$folder/pages"
cp "$source/README.md" "$folder/pages/top.md"
export ATTEST_PAGES=$folder/pages ATTEST_CI=$folder/ci
mkdir -p "$ATTEST_CI/.github"
cp -r "$source/.github/actions" "$ATTEST_CI/.github"
cp -r "$source/.gitlab" "$ATTEST_CI"
venv/bin/python -m attest check "seq=4 dim=4"
cp -r "$source/tests/python" "$folder/tests"
cp "$source"/tests/exploits/*.py "$folder/tests"
(cd "$source/backends" && tar -c --exclude=peers/build peers) | tar -x -C "$folder"  # libraries may be installed there
export ATTEST_PEERS=$folder/peers
cd "$folder/tests"
# Two at a time, each file by one of them.
"$folder/venv/bin/python" -m pytest -q -p no:cacheprovider --no-header -n 2 --dist loadfile .
