#!/usr/bin/env bash
# tidy.sh BUILD [--all | FILE...]: clang-tidy 14, with the checks of .clang-tidy, over sources of this project.
#
# Without files over those that changed: since the branch left origin's, or in the last ten commits where it has not, and
# what isn't committed yet; for a header over the source beside it. The latest six at most (ATTEST_TIDY_FILES), and none
# of tests/, which are looked at when named: so it ends within minutes. Exit code 77 where it can't run: without clang-tidy
# 14, or outside a checkout.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "$1")
shift
skip() { echo "tidy: $*; nothing was looked at"; exit 77; }
command -v clang-tidy-14 >/dev/null || skip "clang-tidy-14 is not installed"
[ -f "$build/compile_commands.json" ] || skip "$build/compile_commands.json is not there"
cd "$root"

# Those that the build compiles, and that are written by hand.
known() { grep -oE '"file": "[^"]*"' "$build/compile_commands.json" | cut -d '"' -f 4 | sed -n "s|^$root/||p" | grep -v '^build' | sort -u; }

changed() {
  local from
  from=$(git merge-base HEAD origin/HEAD 2>/dev/null || git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -z "$from" ] || [ "$from" = "$(git rev-parse HEAD)" ]; then
    from=$(git rev-list -n 11 --first-parent HEAD | tail -n 1) # a shallow clone has fewer, and may have one
  fi
  git diff --name-only HEAD
  git log --first-parent -m --name-only --format= "$from..HEAD"
}

if [ "${1:-}" = --all ]; then
  files=$(known)
elif [ $# -gt 0 ]; then
  files=$(printf '%s\n' "$@" | sed "s|^$root/||")
else
  git rev-parse --verify --quiet HEAD >/dev/null 2>&1 || skip "this is no checkout of git"
  files=$(changed | sed -n 's/\.h$/.cpp/; /\.cpp$/p' | grep -v '^tests/' | awk '!met[$0]++' | grep -xF -f <(known) | head -n "${ATTEST_TIDY_FILES:-6}") || true
fi
[ -n "$files" ] || { echo "tidy: no source changed"; exit 0; }

# The compiler's warnings are the build's: clang has others than GCC.
status=0
printf '%s\n' $files | xargs -P 2 -n 1 timeout 240 clang-tidy-14 -p "$build" --quiet --extra-arg=-w \
  2> >(grep -vE '^[0-9]+ (warning|error)s?.* (generated|treated as errors?)|^Suppressed |^Use -header-filter' >&2) || status=$?
[ "$status" -eq 0 ] || { echo "tidy: see above; .clang-tidy says which checks there are" >&2; exit 1; }
echo "tidy: $(wc -w <<<"$files") sources"
