#!/usr/bin/env bash
# own_project.sh BUILD: follows backends/README.md#in-a-project-of-your-own to the letter, as somebody would who has nothing
# but an installed attest: the guide comes from the installation, the project's files are its blocks.
set -euo pipefail
source "$(dirname "$0")/../docs/documents.sh"
build=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cmake --install "$build" --prefix first >/dev/null
guide=first/share/doc/attest/backends/README.md
"$docs/links.sh" first/share/doc/attest

mkdir mine
block "$guide" the-smallest-plan cpp >mine/check_mine.cpp
block "$guide" in-a-project-of-your-own cmake >mine/CMakeLists.txt
ln -s "$build" build
run_commands log < <(commands "$guide" | awk -F '\t' '$2 == "in-a-project-of-your-own" { print "backends/README.md:" $1 "\t" $3 }')
mine/build/check_mine check "seq=33x65 dim=40" | tail -n 1

# Commands that the own program prints are its own: attest does not have its backends.
sed -i 's/weights\[j\] \*= scale;//' mine/check_mine.cpp
cmake --build mine/build >/dev/null
status=0
mine/build/check_mine check "seq=33x65 dim=40" --no-shrink >log || status=$?
printed=$(sed -n 's/^ *\(check_mine check .*\)/\1/p' log | head -n 1)
[ "$status" = 1 ] && (PATH=$PWD/mine/build:$PATH; eval "$printed") >log || status=$?
[ "$status" = 1 ] && grep -q '^FAIL mine' log || { echo "own_project: printed was: $printed" >&2; exit 1; }
