#!/usr/bin/env bash
# speeds_rerun.sh: results/speeds.md is what results/peers/speeds/ says, and small cases, timed again where the libraries are
# installed, give each backend a speed or the refusal that is written down. $ATTEST_PEERS_ENVIRONMENTS is where
# backends/peers/install.sh put them.
set -euo pipefail
cd "$(dirname "$0")/../.."
python3 backends/peers/speeds_report.py --check
environments=${ATTEST_PEERS_ENVIRONMENTS:-backends/peers/build}
[ -x "$environments/speeds/bin/python" ] || { echo "the libraries are not installed in $environments (backends/peers/install.sh speeds)" >&2; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# One that all can do, one with grouped heads, one with a type that few have, one that none has.
for threads in 1 2; do
  python3 backends/peers/speeds.py --environments "$environments" --suites shapes --threads $threads --repetitions 4 --min-time 0.01 \
    --filter 'heads=16 seq=512 dim=8$|^heads=32/8 seq=16x|^dtype=f16|layout=thd' --results "$folder"
done
python3 backends/peers/speeds_report.py --data "$folder" >"$folder/page.md"
python3 backends/peers/speeds_report.py --rerun "$folder"
