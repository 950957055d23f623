#!/usr/bin/env bash
# consumer.sh SOURCE: builds a copy of attest, installs it, deletes the copy, and lets projects of others use what was
# installed, after it was moved: one with a kernel of its own, and one that follows backends/README.md. Nothing installed
# may name the copy. A project that builds attest as a part of itself comes before.
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

# Folders may have other names, as a distribution's do.
cmake -S "$work/attest" -B "$work/attest/build" -DCMAKE_INSTALL_BINDIR=libexec/checkers -DCMAKE_INSTALL_DATADIR=data \
  -DCMAKE_INSTALL_INCLUDEDIR=headers >/dev/null
ninja -C "$work/attest/build" --quiet
cmake --install "$work/attest/build" --prefix "$work/built_renamed" >/dev/null

# As a part of the project around it.
mkdir "$work/around"
cp "$here/consumer/check_mine.cpp" "$work/around"
mv "$work/attest" "$work/around/attest"
cat >"$work/around/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(around LANGUAGES CXX)
set(CMAKE_BUILD_TYPE Release)
add_subdirectory(attest)
add_executable(check_mine check_mine.cpp)
target_link_libraries(check_mine PRIVATE attest::harness)
END
cmake -S "$work/around" -B "$work/around/build" -G Ninja $example_alone >/dev/null
ninja -C "$work/around/build" -t commands check_mine >"$work/log"  # compiling all of it again would show no more
grep -qE 'ATTEST_INSTALLED_DATA=.*/around/build/attest/share/attest.* -c .*/installed_data.cpp' "$work/log" &&
  grep -qE 'undefined=attest_installed_data.* -o check_mine' "$work/log" || { echo "a project around attest is not told where its data lie" >&2; exit 1; }
[ -f "$work/around/build/attest/share/attest/cases/smoke.cases" ]
ninja -C "$work/around/build" --quiet CMakeFiles/check_mine.dir/check_mine.cpp.o

rm -rf "$work/around"
mv "$work/built" "$work/prefix"
mv "$work/built_renamed" "$work/renamed"

# The installed program finds its suites, lists and walkthroughs beside itself, from any folder, and knows no other.
cd /
"$work/prefix/bin/attest" check --suite smoke --backend example
"$work/prefix/bin/attest" check --suite walkthroughs --backend example
"$work/prefix/bin/attest" trace three_tokens >/dev/null
"$work/renamed/libexec/checkers/attest" check --suite smoke --backend example
if grep -rlF -e "$work/attest" -e "$work/built" "$work/prefix" "$work/renamed"; then
  echo "these name the folder that attest was built in" >&2
  exit 1
fi
mv "$work/prefix/share" "$work/prefix/elsewhere"
status=0
"$work/prefix/bin/attest" check --suite smoke >"$work/log" 2>&1 || status=$?
[ "$status" = 2 ] && grep -qF "$work/prefix/share/attest/cases is missing" "$work/log" || { cat "$work/log" >&2; exit 1; }
mv "$work/prefix/elsewhere" "$work/prefix/share"

# A kernel of somebody else's, and every public header by itself.
cp -r "$here/consumer" "$work/consumer"
cd "$work/consumer"
cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" -DATTEST_DOCUMENTS="$work/prefix/share/doc/attest" \
  -DCMAKE_BUILD_TYPE=Release >/dev/null
ninja -C build --quiet
build/check_mine check "seq=33x65 dim=40" "seq=64 dim=64 fill=spread(88)"
build/check_mine check --suite smoke --filter 'mine seq=[1-9][0-9x]* dim=[0-9]+$'
build/check_through_library check --suite smoke --filter 'mine seq=[1-9][0-9x]* dim=[0-9]+$'
cmake -S . -B build_renamed -G Ninja -DCMAKE_PREFIX_PATH="$work/renamed" -DATTEST_DOCUMENTS="$work/renamed/share/doc/attest" \
  -DCMAKE_BUILD_TYPE=Release >/dev/null
ninja -C build_renamed --quiet check_mine
build_renamed/check_mine list suites | grep '^smoke '
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
