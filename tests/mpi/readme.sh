#!/usr/bin/env bash
# readme.sh ATTEST: the command of backends/ring/README.md.
set -euo pipefail
PATH=$(dirname "$(realpath "$1")"):$PATH
cd "$(mktemp -d)"
mpirun -n 2 attest check --suite smoke --backend ring,ring_zigzag --threads 1 --ranks-per-case 2
