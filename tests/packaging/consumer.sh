#!/usr/bin/env bash
# consumer.sh SOURCE: builds a copy of attest, installs it, deletes the copy, and lets projects of others use what was
# installed, after it was moved: one with a kernel of its own, and one that follows backends/README.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source "$here/copy_project.sh"
source "$here/../docs/documents.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_BASEDIR=$work  # where a compiler's cache is in use, it knows the files under another name
copy_project "$1" "$work/attest"
cmake -S "$work/attest" -B "$work/attest/build" -G Ninja $example_alone >/dev/null
ninja -C "$work/attest/build" --quiet
cmake --install "$work/attest/build" --prefix "$work/built" >/dev/null
rm -rf "$work/attest"
mv "$work/built" "$work/prefix"

# The installed program finds its suites and its walkthroughs beside itself.
"$work/prefix/bin/attest" check --suite walkthroughs --backend example
"$work/prefix/bin/attest" trace three_tokens >/dev/null

# A kernel of somebody else's, and every public header by itself.
cp -r "$here/consumer" "$work/consumer"
cd "$work/consumer"
cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release >/dev/null
ninja -C build --quiet
build/check_mine check "seq=33x65 dim=40" "seq=64 dim=64 fill=spread(88)"
build/check_mine check --suite smoke --filter 'mine seq=[1-9][0-9x]* dim=[0-9]+$'
headers=$(grep -c '^| `harness/[a-z_/]*\.h` |' "$1/harness/README.md")
compiled=$(find build -name 'header_*.cpp.o' | wc -l)
[ "$headers" -eq "$compiled" ] || { echo "$headers public headers are listed, $compiled were compiled" >&2; exit 1; }

# The guide, step by step: its commands, and the files that it shows.
guide=$work/prefix/share/doc/attest/backends/README.md
mkdir "$work/own"
cd "$work/own"
ln -s "$work/prefix" prefix
block "$guide" with-the-example-as-a-start cmake >CMakeLists.txt
block "$guide" with-the-example-as-a-start cpp >main.cpp
run_commands "$work/log" < <(commands "$guide" | awk -F '\t' '$2 == "with-the-example-as-a-start" { print "backends/README.md:" $1 "\t" $3 }')
build/attest_mine list backends | grep '^mine '
