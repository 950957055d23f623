#!/usr/bin/env bash
# new_backend.sh SOURCE: follows backends/README.md. A copy of the example under a new name builds and passes smoke, and
# no file that was there before has changed.
set -euo pipefail
source "$(dirname "$0")/copy_project.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy_project "$1" "$work/attest"
cd "$work/attest"
export CCACHE_BASEDIR=$PWD  # where a compiler's cache is in use, it knows the copy's files
find . -type f | sort | xargs sha256sum >"$work/before"

# The guide's commands:
cp -r backends/example backends/mine
sed -i 's/example/mine/g; s/Example/Mine/g' backends/mine/*
mv backends/mine/example.cpp backends/mine/mine.cpp

cmake -S . -B build -G Ninja $example_alone >/dev/null
ninja -C build --quiet
build/bin/attest list backends | grep '^mine '
build/bin/attest check --suite smoke --backend mine
sha256sum --quiet -c "$work/before"
