#!/usr/bin/env bash
# isolation.sh HOSTILE_ATTEST ATTEST: backends that attack the harness end in verdicts of their own, the correct one beside
# them is unharmed, and a run that was killed goes on where it stood.
set -euo pipefail
hostile=$1 attest=$2
. "$(dirname "$0")/environment.sh"
fresh=$(mktemp -d) work="$fresh/a folder"
trap 'rm -rf "$fresh"' EXIT
mkdir "$work"
failures=0
complain() { echo "isolation: $*" >&2; failures=$((failures + 1)); }

printf '%s\n' "seq=5x7 dim=4" "heads=2 seq=9 dim=8 causal" "seq=3 dim=4 fill=integer" >"$work/three.cases"
status=0
"$hostile" check --isolate --timeout 2 --memory 0.5 --no-shrink --suite-file "$work/three.cases" \
  --json "$work/run.jsonl" >"$work/console" 2>"$work/errors" || status=$?
[ "$status" = 1 ] || complain "exit code $status, not 1"
tail -n 1 "$work/console" | grep -q "passed" || complain "no summary at the end"

# Those who take memory have the time for it, on a busy machine, too.
takers=eats_memory,fills_shared_memory,leaks_memory,leaks_shared_memory
"$hostile" check --isolate --timeout 60 --memory 0.5 --no-shrink --suite-file "$work/three.cases" --backend "$takers" \
  --json "$work/takers.jsonl" >/dev/null 2>&1 || true
{ grep -vE "\"backend\":\"(${takers//,/|})\"" "$work/run.jsonl"; grep '"kind":"verdict"' "$work/takers.jsonl"; } >"$work/all.jsonl"
mv "$work/all.jsonl" "$work/run.jsonl"

# backend, verdict, a piece of its reason; each of three cases unless a count is given
expect() {
  local backend=$1 verdict=$2 reason=$3 count=${4:-3}
  local found
  found=$(grep "\"backend\":\"$backend\"" "$work/run.jsonl" | grep "\"status\":\"$verdict\"" | grep -c -- "$reason" || true)
  # "some": a race decides how often
  [ "$found" = "$count" ] || { [ "$count" = some ] && [ "$found" -gt 0 ]; } || {
    complain "$backend: $found of $count verdicts are $verdict with \"$reason\":"
    grep "\"backend\":\"$backend\"" "$work/run.jsonl" | grep -o '"reason":[^}]*"rows"' | sort | uniq -c >&2 || true
  }
}
expect none pass null
expect segfault crashed "ended by Segmentation fault in run"
expect aborts crashed "ended by Aborted in run"
expect hangs timeout '"cause":"took too long"'
expect exits_with_0 crashed "ended with exit code 0 in run"
expect throws_an_int fail '"cause":"threw"'
expect eats_memory crashed "out of memory in run"
expect rounds_up fail "left the rounding mode changed"
expect flushes_to_zero fail "left flush-to-zero switched"
expect right_the_first_time fail "elements are wrong"
expect reads_beyond_k fail "read just beyond the end of k in run"
expect reads_before_v fail "bytes beyond the end of k in run"
expect writes_beyond_o fail "wrote just beyond the end of o in download"
expect writes_before_o fail "wrote 4 bytes before the start of o"
expect changes_its_input fail "changed its input q in run"
expect writes_afterwards fail '"cause":"o: changed after download had returned"' some
expect crashes_in_drop crashed "ended by Segmentation fault in drop" some
expect crashes_in_prepare crashed "ended by Floating point exception in prepare"
# Found when the worker is asked about a later case.
expect crashes_later crashed "ended by Segmentation fault" some
expect crashes_in_refuse crashed "ended by Illegal instruction in refuse"

# What a worker does to its descriptors is its own affair: nothing that it is right without, and a verdict else.
expect cuts_shared_memory pass null
expect seals_shared_memory pass null
expect closes_descriptors crashed "exit code 0 in run"
expect replaces_descriptors crashed "exit code 0 in run"
expect writes_to_connection crashed "gave up its connection to attest in run"
expect answers_by_itself crashed "wrote to its connection to attest in run"
expect leaves_a_child crashed "exit code 0 in run"
expect steals_requests timeout '"cause":"took too long"' some
# What it takes ends it, whether it is allocated, shared with nobody or written into the file that it shares with the harness.
expect fills_shared_memory crashed '"cause":"killed: out of memory"'
expect leaks_memory crashed '"cause":"killed: out of memory"'
expect leaks_shared_memory crashed '"cause":"killed: out of memory"'

# What it says goes to standard error, whichever descriptors this process has open, and a pipe is one of them.
expect says_something pass null
said=$({ "$hostile" check --isolate --backend says_something "seq=4 dim=4" 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; } 2>&1 >"$work/console" | cat)
grep -q "^something$" <<<"$said" && grep -q "1 passed" "$work/console" ||
  complain "what a worker says on standard error: $said, $(tail -n 1 "$work/console")"

# Without a number, a share of what is free is the limit, and said.
"$attest" check --isolate --backend example "seq=4 dim=4" >"$work/console"
grep -q "^processes of their own: 60 s for a step, [0-9.]* GiB of memory for all" "$work/console" ||
  complain "the limits of workers are not said"

# bench and tune have the same: who crashes, hangs or leaks has no speed and a reason, whoever stands beside has one.
attacks=none,segfault,exits_with_0,hangs,leaks_memory,crashes_in_prepare,closes_descriptors,throws_an_int
status=0
timeout 120 "$hostile" bench --isolate --timeout 4 --memory 0.5 --threads 1 --repetitions 2 --min-time 0.01 --backend "$attacks" \
  "seq=16 dim=8" --json "$work/speeds.json" >"$work/console" 2>&1 || status=$?
[ "$status" = 1 ] || complain "bench of hostile backends: exit code $status"
reason() { # BACKEND KIND
  grep '"no_speed"' "$work/speeds.json" | grep -q "\"backend\":\"$1\",\"cause\":\"$2\"" || complain "bench: $1 is not $2"
}
reason segfault crashed
reason exits_with_0 crashed
reason hangs timeout
reason leaks_memory out_of_memory
reason crashes_in_prepare crashed
reason closes_descriptors crashed
reason throws_an_int threw
grep -q '"name": "none/seq=16 dim=8' "$work/speeds.json" || complain "bench: who is right lost the speed by the others"
grep -qE "^ +none +[0-9]" "$work/console" && grep -q "hangs  *no speed: timeout" "$work/console" || complain "bench: $(cat "$work/console")"

# The same of tune, whose variants are backends.
status=0
timeout 120 "$hostile" tune --isolate --timeout 1 --threads 1 --repetitions 2 --min-time 0.01 --backend minds_its_parameters \
  --cache "$work/tuned.json" "seq=16 dim=8" >"$work/console" 2>&1 || status=$?
[ "$status" = 1 ] && grep -q "tile=2: no speed: .*exit code 0" "$work/console" && grep -q "tile=3: no speed: .*timeout" "$work/console" &&
  grep -q "tile=4: no speed: .*Segmentation fault" "$work/console" && grep -q "^kept in" "$work/console" ||
  complain "tune of a backend that minds its parameters: exit code $status, $(cat "$work/console")"

# What a worker does wrong when its last plan is given up is no verdict of a case, and no success either.
status=0
"$hostile" check --isolate --backend crashes_in_drop,none "seq=4 dim=4100" >"$work/console" 2>&1 || status=$?
[ "$status" = 1 ] && grep -q "crashes_in_drop, after its last case: ended by Segmentation fault" "$work/console" ||
  complain "a crash after the last case: exit code $status, $(tail -n 1 "$work/console")"

# Workers that are ended together with the harness are no failures.
"$attest" list cases --suite matrix | sed -n 1,900p >"$work/many.cases"
for signal in TERM INT; do
  setsid "$attest" check --isolate --backend example,eigen --suite-file "$work/many.cases" --json "$work/ended.jsonl" \
    >/dev/null 2>&1 &
  run=$!
  sleep 0.7
  kill -$signal -- -"$run" 2>/dev/null || true
  status=0
  wait "$run" || status=$?
  [ "$status" = 130 ] || complain "SIG$signal to the group: exit code $status"
  grep -q '"status":"crashed"' "$work/ended.jsonl" && complain "SIG$signal to the group: a verdict says crashed"
done

# State that is kept where it mustn't be is found through processes as it is without them.
kept=packs_once_per_address,keeps_first_mask,keeps_first_page_table,keeps_first_blocks,keeps_first_sinks,keeps_first_slopes,keeps_first_lengths
kept=$kept,keeps_first_seed,uses_last_plan,adds_to_output,adds_to_workspace,needs_zeroed_memory,wrong_the_second_time
kept=$kept,scales_at_each_download,shared_result,thread_of_prepare,more_threads_than_cores
printf '%s\n' "batch=2 heads=2 seq=5x8 dim=4 lengths=8,4 mask=bool:BHQK:random(0.5) blocks=2x4:random(0.7) alibi align=top-left sinks" \
  "batch=2 heads=2 seq=5x6 dim=4 lengths=6,4 paged=4 dropout=0.5" >"$work/state.cases"
for isolate in "" --isolate; do
  "$hostile" check $isolate --threads 1 --no-shrink --backend "$kept" --suite-file "$work/state.cases" \
    --json "$work/state$isolate.jsonl" >/dev/null 2>&1 || true
done
for backend in ${kept//,/ }; do
  for isolate in "" --isolate; do
    grep '"kind":"verdict"' "$work/state$isolate.jsonl" | grep "\"backend\":\"$backend\"" | grep -q '"status":"fail"' ||
      complain "$backend $isolate: its state is not found"
  done
done

# A worker that dies between two cases is noticed when it is asked about a later one, which is while the case before that
# is checked; no such death is lost. (The hanging backend gives it the time to die.) Two are of the process of the backend, one is of
# the process with more threads than cores.
printf '%s\n' "seq=2 dim=2" "seq=3 dim=2" "seq=4 dim=2" "seq=5 dim=2" >"$work/four.cases"
"$hostile" check --isolate --timeout 0.3 --no-shrink --backend crashes_later,hangs --suite-file "$work/four.cases" \
  --json "$work/later.jsonl" >/dev/null 2>&1 || true
deaths=$(grep '"backend":"crashes_later"' "$work/later.jsonl" | grep -c '"status":"crashed"' || true)
[ "$deaths" = 3 ] || complain "crashes_later: $deaths of 3 deaths reported"

# Killed at any moment, a run loses the case in flight at most.
"$attest" list cases --suite matrix >"$work/all.cases"
head -n 200 "$work/all.cases" >"$work/many.cases"
"$attest" check --isolate --backend example --suite-file "$work/many.cases" --json "$work/killed.jsonl" \
  >/dev/null 2>&1 &
victim=$!
for _ in $(seq 1500); do
  [ "$(cat "$work"/killed.jsonl.part* 2>/dev/null | wc -l)" -gt 20 ] && break
  sleep 0.02
done
kill -9 "$victim" 2>/dev/null || true
wait "$victim" 2>/dev/null || true
part=$(echo "$work"/killed.jsonl.part*)
before=$(grep -c '"kind":"verdict"' "$part")
[ "$before" -ge 20 ] || complain "only $before verdicts on disk when the run was killed"
"$attest" check --isolate --backend example --suite-file "$work/many.cases" --json "$work/killed.jsonl" --resume >"$work/console"
grep -q "200 verdicts" "$work/console" || complain "the resumed run is not whole: $(tail -n 2 "$work/console")"
[ "$(grep -c '"kind":"verdict"' "$work/killed.jsonl")" = 200 ] || complain "the file of the resumed run is not whole"
# What was there is taken over, times and all.
grep '"kind":"verdict"' "$part" 2>/dev/null && complain "the unfinished file is still there"
"$attest" check --isolate --backend example --suite-file "$work/many.cases" --json "$work/again.jsonl" >/dev/null
strip() { grep '"kind":"verdict"' "$1" | sed 's/"seconds":{[^}]*}//'; }
cmp <(strip "$work/killed.jsonl") <(strip "$work/again.jsonl") || complain "a resumed run differs from a whole one"

# Isolated or not, the verdicts are the same.
"$attest" check --suite smoke --json "$work/inside.jsonl" >/dev/null
"$attest" check --suite smoke --isolate --json "$work/outside.jsonl" >/dev/null
# But for the option that their commands repeat.
cmp <(strip "$work/inside.jsonl") <(strip "$work/outside.jsonl" | sed 's/ --isolate / /') || complain "isolation changes verdicts of smoke"

# A failure that an earlier case caused names it, whoever isolates, and shrinks with it. The printed command repeats it.
for isolate in --isolate ""; do
  status=0
  "$hostile" check $isolate --backend name_of_element_count "heads=2 seq=4x6 dim=8" "seq=3 dim=5" "heads=2 seq=4x8 dim=6" \
    >"$work/after" || status=$?
  [ "$status" = 1 ] && grep -q "wrong after 'heads=2 seq=4x6 dim=8'" "$work/after" || complain "after another case: $(cat "$work/after")"
done
status=0
"$hostile" shrink --backend name_of_element_count "heads=2 seq=4x6 dim=8" "heads=2 seq=4x8 dim=6" >"$work/after" || status=$?
[ "$status" = 1 ] && grep -q "^seq=1x8 dim=6/1 fill=constant(1)$" "$work/after" || complain "a pair shrinks to: $(cat "$work/after")"
status=0
status=0
"$hostile" shrink "heads=2 seq=4 dim=8 softcap=2" --backend flushes_to_zero >"$work/around" || status=$?
[ "$status" = 1 ] && grep -q "^not needed: softcap$" "$work/around" && grep -q "^fails as well with: .*heads=2" "$work/around" ||
  complain "what surrounds a smallest case: $(cat "$work/around")"
status=0
"$hostile" check --backend name_of_element_count "seq=1x6 dim=8/1 fill=constant(1)" "seq=1x8 dim=6/1 fill=constant(1)" \
  >/dev/null || status=$?
[ "$status" = 1 ] || complain "the pair does not fail: exit code $status"
"$hostile" check --backend name_of_element_count "seq=1x8 dim=6/1 fill=constant(1)" >/dev/null || complain "the second fails alone"

# Steps that a failure printed repeat it, in a worker, too.
for isolate in --isolate ""; do
  status=0
  "$hostile" check $isolate --backend third_run "seq=2 dim=2" --no-shrink \
    --steps "1:prepare 1:upload 1:run 1:run 1:run 1:download" >"$work/steps" || status=$?
  [ "$status" = 1 ] && grep -q -- "--steps '1:prepare 1:upload 1:run 1:run 1:run 1:download'" "$work/steps" ||
    complain "steps: $(cat "$work/steps")"
done

# A file on which a backend fails becomes the smallest file, and its command repeats the failure.
golden=$(cd "$(dirname "$0")/../golden" && pwd)
status=0
"$hostile" shrink "$golden/walkthroughs/three_tokens_f32.safetensors" --backend flushes_to_zero --out "$work/small.safetensors" \
  >"$work/shrunk" || status=$?
[ "$status" = 1 ] && grep -q "^seq=1 dim=1$" "$work/shrunk" || complain "shrinking a file: exit code $status"
status=0
"$hostile" check --backend flushes_to_zero "$work/small.safetensors" --no-shrink >/dev/null || status=$?
[ "$status" = 1 ] || complain "the shrunk file does not fail: exit code $status"

# check does the same for the first failing files, where it is told a folder, and says so where it isn't.
status=0
"$hostile" check --backend flushes_to_zero "$golden/walkthroughs/three_tokens_f32.safetensors" --shrunk "$work/small" >"$work/shrunk" ||
  status=$?
small=$work/small/three_tokens_f32-flushes_to_zero.safetensors
[ "$status" = 1 ] && grep -q "smallest found: .*three_tokens_f32-flushes_to_zero" "$work/shrunk" && [ -s "$small" ] ||
  complain "check --shrunk: exit code $status"
"$hostile" check --backend flushes_to_zero "$golden/walkthroughs/three_tokens_f32.safetensors" >"$work/shrunk" || true
grep -q "^--shrunk FOLDER writes" "$work/shrunk" || complain "check does not say how a failing file gets smaller"
status=0
"$attest" check "seq=2 dim=2" --backend example --shrunk "$small/below" >/dev/null 2>"$work/error" || status=$?
[ "$status" = 2 ] && [ "$(wc -l <"$work/error")" = 1 ] || complain "--shrunk below a file: exit code $status"

# Results keep the command, and no folder of the machine it ran on.
"$attest" check "seq=2 dim=2" --backend example --json="$work/portable.jsonl" --junit "$work/portable.xml" >/dev/null
head -n 1 "$work/portable.jsonl" | grep -q '"command":\["attest","check","seq=2 dim=2","--backend","example","--json=portable.jsonl","--junit","portable.xml"\]' ||
  complain "the command in the results: $(head -n 1 "$work/portable.jsonl")"

[ "$failures" = 0 ] && echo "isolation: all as expected"
exit "$((failures > 0))"
