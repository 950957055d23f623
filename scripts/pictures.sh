#!/usr/bin/env bash
# Draws the pictures of README.md and results/ anew, from committed data, and brings tables of documents up to date.
#
#   ./scripts/pictures.sh [ATTEST]      the program is built where it is not given
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
[ $# -gt 0 ] || attest_program
"$attest_root/tests/docs/tables.sh" "${1:-$attest_build/bin/attest}" --write
