#!/usr/bin/env bash
# plugins.sh BUILD: follows backends/plugin/README.md to the letter, as somebody would who has nothing but an installed attest:
# the skeleton in C is written, built and passes its tests in less than five minutes, then C++; and every
# command that takes a plug-in. The skeleton in the tree is written from the same installation into sources.
set -euo pipefail
source "$(dirname "$0")/../docs/documents.sh"
build=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cmake --install "$build" --prefix prefix >/dev/null
guide=prefix/share/doc/attest/backends/plugin/README.md
follow() { # SECTION
  run_commands "$work/log" < <(commands "$guide" | awk -F '\t' -v section="$1" '$2 == section { print "backends/plugin/README.md:" $1 "\t" $3 }')
}
fail() { echo "plugins: $*" >&2; exit 1; }

start=$SECONDS
follow a-plug-in-in-c
took=$((SECONDS - start))
[ "$took" -lt 300 ] || fail "the skeleton took $took s"
[ -f mine/ci.yml ] && [ -f libmine.so ] || fail "a file of the skeleton is missing"
grep -q 'example_c' -r mine --include='*.c' --include='*.txt' --include='*.yml' && fail "the skeleton names the example"
attest() { "$work/prefix/bin/attest" "$@"; }
follow plug-ins
mkdir mine_cpp
block "$guide" the-c-wrapper cmake >mine_cpp/CMakeLists.txt
follow the-c-wrapper

# Where attest lies as it was built, nothing need be installed. Where its headers are missing, the message says what to do.
(PATH=$build/bin:$PATH; cmake -S mine -B mine/beside >log 2>&1) || fail "beside a build: $(cat log)"
mkdir -p lonely/bin
cp prefix/bin/attest lonely/bin/attest
status=0
(PATH=$work/lonely/bin:$PATH; cmake -S mine -B mine/without >log 2>&1) || status=$?
[ "$status" != 0 ] && grep -q "cmake --install build --prefix PREFIX" log || fail "without headers: $status, $(cat log)"
status=0
(PATH=/usr/bin:/bin; cmake -S mine -B mine/nothing >log 2>&1) || status=$?
[ "$status" != 0 ] && grep -q "cmake --install build --prefix PREFIX" log || fail "without attest: $status, $(cat log)"

# What new-backend says of names and places, in one line.
complaint() { # TEXT ARGUMENT...
  local status=0
  attest new-backend "${@:2}" >log 2>&1 || status=$?
  [ "$status" = 2 ] && [ "$(wc -l <log)" = 1 ] && grep -qF -- "$1" log || fail "new-backend ${*:2}: $status, $(cat log)"
}
complaint 'mine is there already: choose another name, or remove it' mine
complaint '"Mine" is no name of a backend' Mine
complaint '"../mine" is no name of a backend' ../mine
complaint '"eigen" is taken' eigen
complaint '"reference" is taken' reference
complaint "--in-tree: backends/backend.h is not here" ours --in-tree

# In the tree: what lies there before the build; tests/packaging/new_backend.sh builds such a folder.
mkdir -p tree/backends
touch tree/backends/backend.h
(cd tree && attest new-backend my_kernel --in-tree >/dev/null)
for file in CMakeLists.txt my_kernel.cpp linear.h ci.yml; do [ -f "tree/backends/my_kernel/$file" ] || fail "--in-tree: no $file"; done
grep -q 'ATTEST_REGISTER_BACKEND(my_kernel, MyKernelBackend)' tree/backends/my_kernel/my_kernel.cpp || fail "--in-tree: the class is not renamed"
echo "plugins: the skeleton in C passed after $took s"
