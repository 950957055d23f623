#!/usr/bin/env bash
# lint.sh [WHAT [BUILD]]: looks at how sources and documents are written. It says nothing of what the program does.
#
#   ./scripts/lint.sh                 all that a checkout allows
#   ./scripts/lint.sh format          clang-format 14 on every C++ source
#   ./scripts/lint.sh style           each test asserts, each source has a test, one definition of attention
#   ./scripts/lint.sh names build     the documents describe every name that the program of BUILD has
#   ./scripts/lint.sh tidy build      clang-tidy 14 on the sources that changed
#   ./scripts/lint.sh all build       all of it; ends with 77 where one of the tools is missing
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
what=${1:-all} build=${2:-$root/build-test}
cd "$root"
status=0 skipped=0
run() { # COMMAND...
  local code=0
  "$@" || code=$?
  case $code in 0) ;; 77) skipped=1 ;; *) status=1 ;; esac
}

format() {
  local tool=
  for name in clang-format-14 clang-format; do
    [[ $("$name" --version 2>/dev/null) != *"version 14."* ]] || { tool=$name; break; }
  done
  [ -n "$tool" ] || { echo "lint: clang-format 14 is not installed; formatting was not looked at"; return 77; }
  local sources=()
  while IFS= read -r -d '' file; do [ ! -f "$file" ] || sources+=("$file"); done < <(
    git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp')
  "$tool" --dry-run --Werror "${sources[@]}" || return 1
  echo "format: ${#sources[@]} sources"
}
style() {
  local wrong=0
  tests/tools/every_test_asserts.py || wrong=1
  tests/tools/every_source_has_a_test.sh || wrong=1
  tests/docs/definition.sh || wrong=1
  tests/docs/counts.sh || wrong=1
  return $wrong
}

case $what in
  format | style) run "$what" ;;
  names) run tests/docs/names.sh "$build/bin/attest" ;;
  tidy) run tests/tools/tidy.sh "$build" ;;
  all)
    run format
    run style
    [ ! -x "$build/bin/attest" ] || run tests/docs/names.sh "$build/bin/attest"
    run tests/tools/tidy.sh "$build"
    ;;
  *) echo "lint.sh: unknown: $what; choose format, style, names, tidy or all" >&2; exit 2 ;;
esac
[ $status -eq 0 ] || exit 1
[ $skipped -eq 0 ] || exit 77
