#!/usr/bin/env bash
# shards.sh ATTEST HOSTILE_ATTEST: parts put together are the run of the whole: by hand, as harness/SHARDS.md's CI matrix does
# (its section a-ci-matrix), with failures, after a kill. About ten seconds.
set -euo pipefail
attest=$(realpath "$1") hostile=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/environment.sh"
. "$here/../docs/documents.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0 lines=$(grep -c "^[^#]" "$here/../cases/smoke.cases") # of smoke
complain() { echo "shards: $*" >&2; failures=$((failures + 1)); }
# Verdicts without their times, in their order.
strip() { grep '"kind":"verdict"' "$1" | sed 's/"seconds":{[^}]*}//'; }
# A JUnit file without its times.
untimed() { sed 's/ time="[^"]*"//g' "$1"; }

# With files, refusals, inconclusive and wrong backends: the same verdicts in the same order, the same JUnit, the same exit code.
compare() { # NAME PROGRAM OPTIONS...
  local name=$1 program=$2 whole=0 merged=0 part
  shift 2
  "$program" check "$@" --no-shrink --json "$name.jsonl" --junit "$name.xml" >"$name.table" || whole=$?
  for part in 1 2 3; do
    "$program" check "$@" --no-shrink --shard "$part/3" --json "$name-$part.jsonl" >/dev/null || true
  done
  "$attest" merge "$name"-[123].jsonl --json "$name-merged.jsonl" --junit "$name-merged.xml" >"$name-merged.table" || merged=$?
  [ "$whole" = "$merged" ] || complain "$name: exit code $merged, the whole run's is $whole: $(tail -n 3 "$name-merged.table")"
  [ "$(strip "$name.jsonl" | wc -l)" -gt 20 ] || complain "$name: nothing to compare"
  diff <(strip "$name.jsonl") <(strip "$name-merged.jsonl") >diff || complain "$name: other verdicts: $(head -n 4 diff)"
  diff <(untimed "$name.xml") <(untimed "$name-merged.xml") >diff || complain "$name: another JUnit: $(head -n 4 diff)"
  [ "$(tail -n 1 "$name.table")" = "$(tail -n 1 "$name-merged.table")" ] || complain "$name: $(tail -n 1 "$name-merged.table")"
}
compare smoke "$attest" --suite smoke --suite walkthroughs --backend example,eigen
compare refusing "$attest" --suite linear --filter ' (seq|batch)' --backend simd,example
# What these refuse is no fault here: it is listed first.
"$hostile" check --suite smoke --backend none,throws_an_int,rounds_up --isolate --no-shrink --write-refusals lists >/dev/null || true
ATTEST_LISTS=$work/lists compare wrong "$hostile" --suite smoke --backend none,throws_an_int,rounds_up --isolate

# Missing, double, interrupted, nonsense.
expect() { # EXIT-CODE TEXT COMMAND...
  local wanted=$1 text=$2 code=0
  shift 2
  "$@" >out 2>&1 || code=$?
  [ "$code" = "$wanted" ] && grep -qF -- "$text" out || complain "exit code $code, not $wanted with \"$text\": $*: $(cat out)"
}
expect 1 "no file is of shard 2/3" "$attest" merge smoke-1.jsonl smoke-3.jsonl --json two.jsonl
expect 0 " are double, counted once" "$attest" merge smoke-[123].jsonl smoke-2.jsonl
expect 2 "wrong-1.jsonl: is of other cases" "$attest" merge smoke-1.jsonl wrong-1.jsonl --json none.jsonl --junit none.xml
head -n 3 smoke-2.jsonl >ended.jsonl
expect 2 "ended.jsonl: ends before its summary" "$attest" merge smoke-1.jsonl ended.jsonl --json none.jsonl --junit none.xml
head -c 1000 smoke-2.jsonl >cut.jsonl
expect 2 "cut.jsonl" "$attest" merge smoke-1.jsonl cut.jsonl --json none.jsonl
expect 2 "this command reads this file; name another one" "$attest" merge smoke-1.jsonl --json ./smoke-1.jsonl
expect 2 "absent.jsonl" "$attest" merge smoke-1.jsonl absent.jsonl --json none.jsonl
! ls none* 2>/dev/null || complain "something was written"
sed 's/"cpu":"[^"]*"/"cpu":"another\\u001b"/' smoke-2.jsonl >moved.jsonl
expect 0 'the parts differ in processor' "$attest" merge smoke-1.jsonl moved.jsonl smoke-3.jsonl
grep -qF 'another\x1b' out || complain "a name's control characters are not shown: $(grep processor out)"

# What is missing is found by a run that goes on from the merged file.
expect 0 "taken over from the earlier run" "$attest" check --suite smoke --suite walkthroughs --backend example,eigen --no-shrink \
  --json two.jsonl --resume
diff <(strip smoke.jsonl | sort) <(strip two.jsonl | sort) >diff || complain "gone on from two parts: $(head -n 4 diff)"

# The document's CI matrix, its steps in turn.
block "$root/harness/SHARDS.md" a-ci-matrix yaml >matrix.yaml
shards=$(sed -n 's/.*shard: \[\(.*\)\].*/\1/p' matrix.yaml | tr -d ,)
mapfile -t steps < <(sed -n 's/^ *- run: //p' matrix.yaml)
[ "$(wc -w <<<"$shards")" = 3 ] && [ "${#steps[@]}" = 2 ] || complain "the document's matrix has changed its form"
mkdir ci
cd ci
attest() { "$attest" "$@"; }
for shard in $shards; do
  eval "${steps[0]//'${{ matrix.shard }}'/$shard}" >out || complain "the matrix: ${steps[0]}: $(tail -n 2 out)"
done
eval "${steps[1]}" >out || complain "the matrix: ${steps[1]}: $(cat out)"
[ "$(strip whole.jsonl | wc -l)" = $((2 * lines)) ] && grep -q "tests=\"$((2 * lines))\"" whole.xml || complain "the matrix: $(tail -n 1 out)"
[ "$failures" = 0 ] && echo "shards: parts are the whole"
