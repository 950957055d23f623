#!/usr/bin/env bash
# bundle.sh ATTEST ANSWER PLUGIN CC: a bundle of smoke and more, answered by right and by wrong kernels from its files alone:
# `attest verify` and both small checkers find every case wrong that `attest check` finds wrong, and no other.
set -euo pipefail
attest=$1 answer=$2 plugin=$3 cc=$4
golden=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../backends/golden" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "bundle: $*"; exit 1; }

"$cc" -std=c99 -Wall -Wextra -Werror -O1 -o "$work/check" "$golden/check.c" -lm
for checker in check.c check.py; do
  lines=$(wc -l <"$golden/$checker")
  ((lines <= 60)) || fail "$checker has $lines lines; 60 are promised"
done

# Beside smoke: pages, packed sequences, gradients, codes of 4 bits, and a cache that the call writes to.
cases=("batch=2 heads=2 seq=3x11 dim=4 lengths=11,4 paged=4 causal align=bottom-right"
  "batch=3 heads=2 seq=6 dim=4 lengths=q:6,0,3/k:6,0,3 layout=thd gap=2 causal out=o,lse"
  "pass=both heads=4/2 seq=5x8 dim=4 causal align=bottom-right"
  "heads=2 seq=3x9 dim=8 k.dtype=i4 v.dtype=e2m1 k.scale=block:4 v.scale=token k_scales.dtype=e8m0"
  "batch=2 heads=2 seq=2x9 dim=4 lengths=9,4 append causal align=bottom-right dtype=bf16" --suite smoke)

# In two parts, the first of which is ended and begun again.
"$attest" export "${cases[@]}" --backend example --out "$work/bundle" --shard 1/2 >"$work/sizes"
grep -q "bounds for what example states" "$work/sizes" || fail "sizes are not told: $(cat "$work/sizes")"
rm "$(find "$work/bundle" -name '*.safetensors' | sort | head -1)"
"$attest" export "${cases[@]}" --backend example --out "$work/bundle" --shard 1/2 >"$work/sizes"
"$attest" export "${cases[@]}" --backend example --out "$work/bundle" --shard 2/2 >"$work/sizes"
files=$(find "$work/bundle" -name '*.safetensors' | wc -l)
listed=$(grep -c '"kind":"case"' "$work/bundle/bundle.jsonl")
((files == listed && files > 20)) || fail "$files files, $listed cases"
! "$attest" export "seq=4 dim=4" --backend example --out "$work/bundle" 2>"$work/err" || fail "a bundle was written into another"
grep -q "holds another bundle" "$work/err" || fail "$(cat "$work/err")"

# The files that a checker calls wrong.
wrong_by() { # checker command...
  for file in "$work/answers"/*.safetensors; do
    "$@" "$work/bundle/${file##*/}" "$file" >/dev/null || echo "${file##*/} $?"
  done
}
# The cases that verdicts of a file call wrong.
failing() { sed -n '/"status":"\(fail\|crashed\)"/s/.*"case":"\([^"]*\)".*/\1/p' "$1" | sort -u; }

judged() { # backend [option of attest check...]
  local backend=$1 code=0
  shift
  rm -rf "$work/answers"
  "$answer" "$work/bundle" "$work/answers" "$backend" >"$work/answered"
  "$attest" verify "$work/bundle" "$work/answers" --partial --name "$backend" --json "$work/verify.jsonl" --quiet \
    >/dev/null || code=$?
  wrong_by "$work/check" >"$work/c.txt"
  case $backend in example | missing_scale | nan_on_empty_row)
    wrong_by python3 "$golden/check.py" >"$work/python.txt"
    cmp -s "$work/c.txt" "$work/python.txt" || fail "$backend: the checkers differ" ;;
  esac
  failing "$work/verify.jsonl" >"$work/verify.txt"
  [ "$(sort -u "$work/verify.txt" | wc -l)" = "$(wc -l <"$work/c.txt")" ] ||
    fail "$backend: verify calls $(wc -l <"$work/verify.txt") wrong, check.c $(wc -l <"$work/c.txt")"
  "$attest" check "${cases[@]}" --backend "$backend" "$@" --once --no-shrink --quiet --json "$work/check.jsonl" \
    >/dev/null || true
  failing "$work/check.jsonl" >"$work/whole.txt"
  cmp -s "$work/verify.txt" "$work/whole.txt" ||
    fail "$backend: $(diff "$work/verify.txt" "$work/whole.txt" | head -5)"
  echo "$backend: $(wc -l <"$work/c.txt") of $files wrong, exit code $code"
  [ "$code" = "$(($(wc -l <"$work/c.txt") > 0))" ]
}

judged example
for wrong in mask_off_by_one missing_scale scale_by_dim unshifted_softmax nan_on_empty_row heads_tiled wrong_corner \
  tail_keys_counted ignored_mask window_off_by_one causal_dropped lse_in_base_2; do judged "$wrong" --plugin "$plugin"; done

# Nothing is taken for right that is not there.
rm -rf "$work/answers"
mkdir "$work/answers"
! "$attest" verify "$work/bundle" "$work/answers" >"$work/out" || fail "no answer was taken for right"
code=0
"$attest" verify "$work/bundle" "$work/answers" --partial >"$work/out" 2>&1 || code=$?
[ "$code" = 3 ] || fail "nothing at all was right with --partial: exit code $code"
