# Sourced by the documents' tests: where the documents are, blocks of them, and how their commands are run.

docs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$docs/../.." && pwd)

# Every document below a folder (the project by default), without what builds left there.
documents() {
  (cd "${1:-$root}" && find . -name '*.md' -not -path './build*' -not -path './.git/*' -not -path './backends/peers/build/*' | sed 's,^\./,,' | sort)
}

# markdown WHAT FILE: see markdown.awk.
markdown() { awk -v want="$1" -f "$docs/markdown.awk" "$2"; }

# block FILE SECTION LANGUAGE: the text of the section's blocks in that language.
block() {
  markdown blocks "$1" | awk -F '\t' -v language="$3" -v section="$2" '
    $2 == language && $3 == section { sub(/^[^\t]*\t[^\t]*\t[^\t]*\t/, ""); print; found = 1 }
    END { exit !found }' || { echo "$1#$2 has no block of $3" >&2; return 1; }
}

# commands FILE: line, section and text of each command, separated by tabs: lines of its blocks of sh, without comments,
# those that end with \ joined to the next.
commands() {
  markdown blocks "$1" | awk -F '\t' '
    $2 != "sh" || $4 == "" || $4 ~ /^#/ { next }
    { text = text substr($0, length($1 $2 $3) + 4); if (first == "") first = $1 }
    text ~ /\\$/ { sub(/\\$/, "", text); next }
    { print first "\t" $3 "\t" text; first = text = "" }'
}

# run_commands LOG: runs what stdin holds as "place<TAB>command" lines, in order and in this shell; says which don't end
# with 0, or with N where "# exit code N" stands behind them. The result is how many.
run_commands() {
  local place command expected code wrong=0
  while IFS=$'\t' read -r place command; do
    expected=$(sed -n 's/.*# exit code \([0-9]*\).*/\1/p' <<<"$command")
    code=0
    eval "$command" >"$1" 2>&1 </dev/null || code=$?
    [ "$code" = "${expected:-0}" ] && continue
    wrong=$((wrong + 1))
    { echo "$place: exit code $code: $command" && tail -n 5 "$1"; } >&2
  done
  return "$wrong"
}
