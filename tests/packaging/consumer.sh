#!/usr/bin/env bash
# consumer.sh BUILD: installs that build somewhere and lets a project of somebody else use it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/prefix" >/dev/null
cmake -S "$here/consumer" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
ninja -C "$work/build" --quiet
"$work/build/check_mine" check "seq=33x65 dim=40" "seq=64 dim=64 fill=spread(88)"
# The installed program finds its suites and its walkthroughs beside itself.
"$work/prefix/bin/attest" check --suite walkthroughs --backend example
"$work/prefix/bin/attest" trace three_tokens >/dev/null
