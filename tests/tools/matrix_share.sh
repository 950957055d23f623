#!/usr/bin/env bash
# matrix_share.sh ATTEST BACKENDS: a sixteenth of the suite matrix. The number of commits chooses which, so that sixteen
# commits run all of it. Sixteenths are shards: the printed command runs the same cases again.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
commits=$(git -C "$root" rev-list --count HEAD 2>/dev/null || echo 0)
command=("$1" check --suite matrix --shard "$((commits % 16 + 1))/16" --backend "$2" --require "$2" --threads 2 --color never)
echo "matrix_share: attest ${command[*]:1}"
exec "${command[@]}"
