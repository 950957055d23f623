#!/usr/bin/env bash
# all.sh: everything from nothing, in the order of README.md. About ten hours on two cores, and 20 GB of libraries.
set -euo pipefail
cd "$(dirname "$0")/../.."
backends/peers/install.sh
python3 backends/peers/run.py
python3 backends/peers/run.py --fuzz 900
python3 backends/peers/prove.py
python3 backends/peers/report.py
python3 backends/peers/speeds.py
