#!/usr/bin/env bash
# wheel.sh SOURCE [CMAKE -D OPTION]...: the wheel of scripts/wheel.sh works in a fresh virtual environment, with no library of
# this machine but those that every Linux has: what it maps is looked at while it runs, and where the system lets us, the
# libraries that it was linked with are hidden. $ATTEST_TEST_PYTHON is the interpreter; Debian's own otherwise.
set -euo pipefail
source=$(cd "$1" && pwd)
shift
export ATTEST_WHEEL_PYTHON=${ATTEST_TEST_PYTHON:-/usr/bin/python3} CXX=${CXX:-/usr/bin/c++} PIP_DISABLE_PIP_VERSION_CHECK=1
"$ATTEST_WHEEL_PYTHON" -c 'import venv, ensurepip' 2>/dev/null || { echo "no venv: install python3-venv" >&2; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
ln -s "$source/scripts" scripts
start=$SECONDS
scripts/wheel.sh dist -DATTEST_WERROR=ON "$@"
echo "built in $((SECONDS - start)) s"
wheels=(dist/*.whl)
[ ${#wheels[@]} = 1 ] || { echo "wheel: ${#wheels[@]} wheels" >&2; exit 1; }
[[ ${wheels[0]} == *-manylinux_* ]] || { echo "wheel: ${wheels[0]} is for this machine alone" >&2; exit 1; }

start=$SECONDS
"$ATTEST_WHEEL_PYTHON" -m venv venv
venv/bin/pip install --quiet "${wheels[0]}"
cat >mine.py <<'END'
import numpy


def attention(q, k, v):
    scores = q @ numpy.swapaxes(k, -1, -2) / numpy.sqrt(numpy.float32(q.shape[-1]))
    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v
END
venv/bin/python -m attest check "heads=2 seq=33x65 dim=64" "seq=40 dim=32" --python mine.py:attention
echo "wheel: a callable of one's own has its verdicts $((SECONDS - start)) s after there was nothing but the wheel"
cat >use.py <<'END'
"""All that a process has mapped after its work: libraries of the environment, of Python itself, or of every Linux."""
import json
import os
import re
import sys

import attest

for backend in ("example", "eigen", "simd"):
    results = attest.check(backend, "smoke", shrink=False, json="run.jsonl")
    assert results.ok and results.count("pass") > 30, str(results)
build = json.loads(open("run.jsonl").readline())["machine"]["build"]
assert build.endswith("ATTEST_ARCH=x86-64-v3"), build
assert attest.check(lambda q, k, v: v.copy(), "seq=1 dim=4").ok
everywhere = re.compile(r"/(ld-linux-x86-64|lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+))\.so[.\d]*$")
mapped = {line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if ".so" in line}
foreign = [path for path in mapped if not path.startswith(os.path.realpath(sys.prefix)) and not everywhere.search(path)]
pythons = re.compile(r"/lib-dynload/|/lib(python|z|expat|ffi|crypto|ssl|bz2|lzma|uuid)[-.\d]")  # what its own modules bring
foreign = [path for path in foreign if not pythons.search(path)]
assert not foreign, f"libraries of this machine: {sorted(foreign)}"
assert any("attest_attention.libs" in path for path in mapped), sorted(mapped)
print(f"{len(mapped)} libraries, none of this machine's")
END
venv/bin/python use.py

# Once more where these libraries can't be read.
if ! unshare --user --map-root-user --mount true 2>/dev/null && ! unshare --mount true 2>/dev/null; then
  echo "wheel: not tried with hidden libraries: the system lets us unshare nothing"
  exit 0
fi
cat >hidden.sh <<'END'
for library in /usr/lib/*/lib{fmt,pugixml,benchmark,gomp,hwy,openblas}.so.*; do
  [ ! -f "$library" ] || [ -L "$library" ] || mount --bind /dev/null "$library"
done
exec "$@"
END
unshare=(unshare --user --map-root-user --mount)
"${unshare[@]}" true 2>/dev/null || unshare=(unshare --mount)
"${unshare[@]}" bash hidden.sh venv/bin/python use.py
echo "wheel: all as expected"
