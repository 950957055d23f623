#!/usr/bin/env bash
# wrong_requests.sh: every request of wrong_requests.txt is refused, in one line and with nothing on standard output, in no file and with
# exit code 2. Run by transcripts.txt, with $attest_path and $tmp.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
export ATTEST_OPENCL_DEVICE=nonesuch
refused=0 others=0
"$attest_path" check "seq=4 dim=4" --backend example --json "$tmp/v.jsonl" >/dev/null
kept=$(cksum "$tmp/v.jsonl")
head -c 700 "$tmp/v.jsonl" >"$tmp/cut.jsonl"
sed '$d' "$tmp/v.jsonl" >"$tmp/ended.jsonl"
sed 's/"schema":3/"schema":4/' "$tmp/v.jsonl" >"$tmp/younger.jsonl"
echo '{"some":"json"}' >"$tmp/foreign.json"
while IFS= read -r line; do
  case $line in "" | "#"*) continue ;; esac
  part=$(sed 's/ *|.*//' <<<"$line") words=${line#*| }
  (eval "\"\$attest_path\" $words") >"$tmp/out" 2>"$tmp/err" </dev/null
  code=$?
  if [ $code = 2 ] && [ ! -s "$tmp/out" ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -qF -- "$part" "$tmp/err"; then
    refused=$((refused + 1))
  else
    others=$((others + 1))
    echo "exit code $code: $words"
    cat "$tmp/out" "$tmp/err"
  fi
done <"$here/wrong_requests.txt"
[ "$(cksum "$tmp/v.jsonl")" = "$kept" ] || echo "a request changed a file"
ls "$tmp" | grep none
echo "$refused refused as they should be, $others not"
