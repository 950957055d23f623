#!/usr/bin/env bash
# tables.sh ATTEST [--write]: what stands between <!-- COMMAND --> and <!-- end --> in a document is what the command prints,
# and a picture behind <!-- attest ... --svg FILE --> is what it draws. --write brings both up to date. A command is one of
# attest or of tests/docs/; the picture's name counts from the document.
set -euo pipefail
source "$(dirname "$0")/documents.sh"
attest_path=$(realpath "$1") write=${2:-}
export attest_path
attest() { "$attest_path" "$@"; }
export -f attest
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
stale=0 tables=0

complain() { echo "$1 is out of date: run tests/docs/tables.sh ATTEST --write" >&2; stale=1; }

for document in $(documents); do
  while IFS= read -r command; do
    tables=$((tables + 1))
    if [[ $command == *" --svg "* ]]; then
      picture=$(dirname "$document")/${command##* }
      bash -c "${command% *} '$work/picture.svg'" >/dev/null
      [ "$write" != --write ] || cp "$work/picture.svg" "$picture"
      cmp -s "$work/picture.svg" "$picture" || complain "$picture"
      continue
    fi
    bash -c "$command" >"$work/printed"
    if [ "$write" = --write ]; then
      awk -v start="<!-- $command -->" -v new="$work/printed" '
        skipping && /^```/ { next }
        skipping && /^<!-- end -->$/ { skipping = 0 }
        skipping { next }
        { print }
        $0 == start {
          skipping = 1
          getline fence  # a table in a fenced block keeps its fences
          fenced = fence ~ /^```/
          if (fenced) print fence
          while ((getline line < new) > 0) print line
          if (fenced) print "```"
          if (fence == "<!-- end -->") { print fence; skipping = 0 }
        }' "$document" >"$work/document"
      cp "$work/document" "$document"
    fi
    awk -v start="<!-- $command -->" '/^<!-- end -->$/ { inside = 0 } inside && !/^```/ { print } $0 == start { inside = 1 }' \
      "$document" >"$work/written"
    diff "$work/written" "$work/printed" || complain "$document: the table of \"$command\""
  done < <(sed -nE 's/^<!-- ((attest|tests\/docs\/)[ a-z].*) -->$/\1/p' "$document")
done
[ "$tables" -gt 0 ] || { echo "tables: no table found" >&2; exit 1; }
echo "tables: $tables as printed"
exit $stale
