#!/usr/bin/env bash
# peers_rerun.sh: results/peers.md is what results/peers/ says, and `smoke`, run again by the peers that are installed,
# gives the verdicts that are written down. $ATTEST_PEERS_ENVIRONMENTS is where backends/peers/install.sh put them,
# $ATTEST_RERUN_PEERS which of them run; otherwise those that take seconds.
set -euo pipefail
cd "$(dirname "$0")/../.."
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tomllib is of Python 3.11" >&2; exit 77; }
python3 backends/peers/report.py --check
environments=${ATTEST_PEERS_ENVIRONMENTS:-backends/peers/build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
peers=
for peer in ${ATTEST_RERUN_PEERS:-onnx_reference onnxruntime onnxruntime_mha onnxruntime_gqa mlx keras_numpy}; do
  environment=$(python3 -c 'import sys, tomllib; print(tomllib.load(open("backends/peers/peers.toml", "rb"))[sys.argv[1]]["environment"])' "$peer")
  [ ! -x "$environments/$environment/bin/python" ] || peers+=,$peer
done
[ -n "$peers" ] || { echo "no peer is installed in $environments (backends/peers/install.sh)" >&2; exit 77; }
python3 backends/peers/run.py --environments "$environments" --suites smoke --peers "${peers#,}" --results "$folder"
python3 backends/peers/report.py --rerun "$folder"
