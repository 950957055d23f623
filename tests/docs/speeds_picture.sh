#!/usr/bin/env bash
# speeds_picture.sh NAME --svg FILE: draws results/peers/speeds/NAME.json.gz, as shapes.2, with the program in $attest_path.
set -euo pipefail
data=$(cd "$(dirname "$0")/../.." && pwd)/results/peers/speeds/$1.json.gz
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
gzip -dc "$data" >"$folder/$1.json"
"$attest_path" report "$folder/$1.json" --picture peers "$2" "$3"
