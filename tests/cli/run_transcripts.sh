#!/usr/bin/env bash
# run_transcripts.sh ATTEST [TIER]: runs the transcripts of transcripts.txt and compares exit code and output; with TIER, main or slow,
# those alone that stand behind a line "# tier: TIER".
#
# A transcript is "$ command", "= exit code", then lines that must stand in the output (stdout and stderr), in order;
# "! text" must not stand there. {tmp} is a fresh folder, whose name has a space, and attest is the program under test.
set -uo pipefail
attest=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/environment.sh"
cd "$here/../.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
mkdir "$fresh/a folder"
attest() { "$attest_path" "$@"; }
export attest_path=$attest tmp="$fresh/a folder"
in_command='"$tmp"' # a word of its own for the shell, whatever it holds
export -f attest
passed=0 failed=0 command="" expected=0 wants=() wanted=${2:-} tier=""

finish() {
  [ -z "$command" ] && return
  [ -n "$wanted" ] && [ "$tier" != "$wanted" ] && return
  local output code at=1 found ok=1
  output=$(bash -c "$command" 2>&1)
  code=$?
  [ "$code" = "$expected" ] || { ok=0; echo "exit code $code instead of $expected: $command"; }
  for want in "${wants[@]}"; do
    if [[ $want == "! "* ]]; then
      if grep -qF -- "${want#! }" <<<"$output"; then ok=0; echo "must not stand there: ${want#! }   ($command)"; fi
      continue
    fi
    found=$(tail -n "+$at" <<<"$output" | grep -nF -m1 -- "$want" | cut -d: -f1)
    if [ -z "$found" ]; then ok=0; echo "missing: $want   ($command)"; else at=$((at + found - 1)); fi
  done
  if [ $ok = 1 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "$output" | head -20; fi
}

while IFS= read -r line; do
  case $line in
    "# tier: "*) finish; command="" tier=${line#\# tier: } ;;
    "" | "#"*) ;;
    '$ '*) finish; line=${line#\$ } expected=0 wants=(); command=${line//\{tmp\}/"$in_command"} ;;
    '= '*) expected=${line#= } ;;
    *) wants+=("${line//\{tmp\}/"$tmp"}") ;;
  esac
done <"$here/transcripts.txt"
finish
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
