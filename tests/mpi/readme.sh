#!/usr/bin/env bash
# readme.sh BUILD: the command of backends/ring/README.md, whatever the folder of the build is called.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$(realpath "$1")" "$work/build-test"
cd "$work"
mpirun -n 2 build-test/tests/grouped check --suite smoke --backend ring,ring_zigzag
