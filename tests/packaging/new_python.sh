# Sourced by new_options.sh, which sets work, fail and has the copy as its folder.

# python_environment: a virtual environment in $work/venv, with what the module for Python is built with.
python_environment() {
  "${ATTEST_TEST_PYTHON:-/usr/bin/python3}" -m venv "$work/venv" && "$work/venv/bin/pip" install -q --disable-pip-version-check nanobind numpy
}

# check_python BUILD: the module that BUILD has, in a package as it is installed.
check_python() {
  mkdir -p "$work/site/attest/data"
  cp -r harness/python/attest/* "$1"/harness/python/_attest*.so "$work/site/attest"
  cp -r tests/cases tests/golden "$work/site/attest/data"
  export PYTHONPATH=$work/site
  "$work/venv/bin/python" tests/packaging/new_options.py >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "the module for Python"; }
  "$work/venv/bin/python" -m attest check --python tests/packaging/new_options.py:Knows "seq=4x6 dim=4 hidden_first=1" "op=average seq=5 dim=4" \
    >"$work/log" || { cat "$work/log" >&2; fail "a class of Python in a process of its own"; }
}
