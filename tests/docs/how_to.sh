#!/usr/bin/env bash
# how_to.sh BUILD [PAGES]: each page of harness/how-to runs from top to bottom, as somebody would who has nothing but an
# installed attest. Pages come from the installation, or from the folder PAGES. A block behind a line that ends with
# `NAME`: is the file NAME; commands run in order, in one folder, where PREFIX is the installation. Pages with commands of
# `python` need attest for Python: tests/python/test_pages.py runs them.
set -uo pipefail
source "$(dirname "$0")/documents.sh"
build=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/log" || { tail -n 5 "$work/log" >&2; exit 1; }
pages=$(realpath "${2:-$work/prefix/share/doc/attest/harness/how-to}")
export PATH=$work/prefix/bin:$PATH

# Steps of a page: "file NAME BLOCK" and "command LINE<TAB>TEXT"; BLOCK is a file that holds the block's text.
steps() {
  awk -v folder="$1" '
    function run() { if (text != "") print "command\t" first "\t" text; text = "" }
    /^```/ && !inside {
      inside = 1; language = substr($0, 4); block = folder "/" ++blocks; name = ""
      if (match(last, /`[^`]+`:$/)) name = substr(last, RSTART + 1, RLENGTH - 3)
      printf "" > block
      next
    }
    /^```/ {
      inside = 0; close(block); last = ""
      if (name != "") print "file\t" name "\t" block
      next
    }
    inside && language == "sh" && name == "" {
      if ($0 ~ /^#/ || $0 == "") next
      if (text == "") first = FNR
      text = text $0
      if (text ~ /\\$/) sub(/\\$/, "", text); else run()
      next
    }
    inside { print > block; next }
    NF { last = $0 }' "$2"
}

failures=0 ran=0 left=0
for page in "$pages"/*.md; do
  name=$(basename "$page")
  if grep -qE '^python ' "$page"; then
    grep -qF "\"$name\"" "$root/tests/python/test_pages.py" ||
      { echo "how_to: nothing runs $name: it needs Python, and tests/python/test_pages.py does not have it" >&2; failures=$((failures + 1)); }
    left=$((left + 1))
    continue
  fi
  place=$work/${name%.md}
  mkdir -p "$place" "$work/blocks"
  ln -s "$work/prefix" "$place/PREFIX"
  steps "$work/blocks" "$page" >"$work/steps"
  grep -q '^command' "$work/steps" || { echo "how_to: $name has no command" >&2; failures=$((failures + 1)); }
  cd "$place"
  while IFS=$'\t' read -r kind what rest; do
    if [ "$kind" = file ]; then
      cp "$rest" "$what"
    elif ! run_commands "$work/log" <<<"$name:$what"$'\t'"$rest"; then
      failures=$((failures + 1))
    fi
  done <"$work/steps"
  cd "$work"
  ran=$((ran + 1))
done
echo "how-to: $ran pages ran, $left by tests/python, $failures complaint(s)"
[ "$failures" = 0 ] && [ "$ran" -gt 0 ]
