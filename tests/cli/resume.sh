#!/usr/bin/env bash
# resume.sh ATTEST HOSTILE_ATTEST [MOMENTS]: runs that are killed, filled up, doubled and gone on from with other programs
# lose no verdict and turn none green. MOMENTS: how often a run is killed, 100 for the full proof.
set -euo pipefail
attest=$(realpath "$1") hostile=$(realpath "$2") moments=${3:-10}
golden=$(cd "$(dirname "$0")/../golden" && pwd)
. "$(dirname "$0")/environment.sh"
fresh=$(mktemp -d) work="$fresh/a folder"
trap 'rm -rf "$fresh"' EXIT
mkdir "$work"
failures=0 lines=$(grep -c "^[^#]" "$golden/../cases/smoke.cases") # of smoke
complain() { echo "resume: $*" >&2; failures=$((failures + 1)); }
cd "$work"

# Verdicts without their times, in an order of their own.
strip() { grep '"kind":"verdict"' "$1" | sed 's/"seconds":{[^}]*}//' | sort; }
# Verdicts on disk, each once: in the file and in what unfinished runs left. A last line may be cut off.
on_disk() {
  { cat "$1" "$1".part* 2>/dev/null || true; } | { grep -E '^\{"kind":"(verdict|kept)".*\}$' || true; } |
    sed 's/"kind":"[a-z]*"//; s/"seconds":{[^}]*}//' | sort -u
}

# What failed last: alone, first, and kept where a run does not come to it.
printf '%s\n' "seq=4 dim=4" "seq=5 dim=4" "seq=6 dim=4" >three.cases
first() { grep -m1 '"kind":"verdict"' "$1" | grep -o '"case":"[^"]*"'; }
check_three() { "$hostile" check --isolate --no-shrink --suite-file three.cases --json last.jsonl "$@" >last 2>&1; }
check_three --backend throws_an_int --filter "seq=[56]" && complain "no case failed"
check_three --backend throws_an_int --last-failed && complain "--last-failed: no case failed"
[ "$(grep -c '"kind":"verdict"' last.jsonl)" = 2 ] && grep -q '^2 cases failed in the last run of last.jsonl: no other' last ||
  complain "--last-failed: $(grep -c '"kind":"verdict"' last.jsonl) verdicts, $(head -n 1 last)"
check_three --backend throws_an_int --failed-first --fail-fast && complain "--failed-first: no case failed"
[ "$(first last.jsonl)" = '"case":"seq=5 dim=4"' ] || complain "--failed-first: begins with $(first last.jsonl)"
grep -q '"kind":"kept".*"case":"seq=6 dim=4"' last.jsonl || complain "--fail-fast: the failure that was not met is gone"
check_three --backend none --last-failed || complain "--last-failed: another backend fails"
[ "$(grep -c '"kind":"verdict"' last.jsonl)" = 2 ] && [ "$(grep -c '"kind":"kept".*throws_an_int' last.jsonl)" = 2 ] ||
  complain "another backend mends what one failed"
check_three --backend none || complain "a run without --last-failed fails"
check_three --backend none --last-failed || complain "where nothing failed a run fails"
[ "$(grep -c '"kind":"verdict"' last.jsonl)" = 3 ] || complain "where nothing failed not all are checked"

# Killed at any moment: green backends and red ones, whose failures stay failures. The first moments are the shortest, so
# that a run ends in its start, too; the others are random.
"$attest" list cases --suite matrix | sed -n 1,200p >many.cases
command=("$hostile" check --isolate --backend none,rounds_up,throws_an_int --no-shrink --suite-file many.cases)
status=0
"${command[@]}" --json whole.jsonl >whole || status=$?
[ "$status" = 1 ] && [ "$(strip whole.jsonl | wc -l)" = 600 ] && [ "$(grep -c '"status":"pass"' whole.jsonl)" -ge 190 ] &&
  [ "$(grep -c '"status":"fail"' whole.jsonl)" -ge 200 ] || complain "the whole run: exit code $status, $(tail -n 1 whole)"
RANDOM=7
kills=0
: >before
for moment in $(seq "$moments"); do
  "${command[@]}" --json killed.jsonl --resume >/dev/null 2>&1 &
  victim=$!
  [ "$moment" -le 3 ] && sleep "0.0$moment" || sleep "0.$(printf '%03d' $((RANDOM % 900 + 50)))"
  kill -9 "$victim" 2>/dev/null && kills=$((kills + 1))
  wait "$victim" 2>/dev/null || true
  on_disk killed.jsonl >after
  lost=$(comm -23 before after | wc -l)
  [ "$lost" = 0 ] || complain "moment $moment: $lost verdicts are gone"
  mv after before
  # Kept short of its end, so that every moment meets a run at work.
  [ ! -e killed.jsonl ] || { rm -f killed.jsonl killed.jsonl.part*; : >before; }
done
[ "$kills" = "$moments" ] || echo "resume: $((moments - kills)) of $moments runs had ended before they were killed"
status=0
"${command[@]}" --json killed.jsonl --resume >console || status=$?
[ "$status" = 1 ] || complain "the run after the last kill: exit code $status"
cmp <(strip killed.jsonl) <(strip whole.jsonl) || complain "after $moments kills the verdicts are others than of a whole run"
ls killed.jsonl.part* 2>/dev/null && complain "unfinished files are left"
[ "$(tail -n 1 console)" = "$(tail -n 1 whole)" ] || complain "counts: $(tail -n 1 console), not $(tail -n 1 whole)"

# What is not asked for is kept, and counts when it is asked for again.
status=0
"${command[@]}" --json killed.jsonl --resume --filter '^none .*causal' >console || status=$?
[ "$status" = 0 ] || complain "the green part alone: exit code $status"
grep -q "verdicts of the earlier run are none of this one; they are kept in the file" console || complain "no word of what is kept"
[ "$(on_disk killed.jsonl | wc -l)" = 600 ] || complain "$(on_disk killed.jsonl | wc -l) of 600 verdicts are kept"
status=0
"${command[@]}" --json killed.jsonl --resume >console || status=$?
[ "$status" = 1 ] && grep -q "600 of them taken over" console || complain "all of it again: exit code $status, $(tail -n 3 console)"

# A run that is interrupted says so, and keeps what the one before had found.
sed -n '1,3p; 500,600p' whole.jsonl >stopped.jsonl
had=$(on_disk stopped.jsonl)
"${command[@]}" --json stopped.jsonl --junit stopped.xml --resume >console 2>errors &
victim=$!
sleep 0.7
kill -INT "$victim"
status=0
wait "$victim" || status=$?
[ "$status" = 130 ] || complain "interrupted: exit code $status"
grep -q "^INTERRUPTED: [0-9]* of 600 verdicts$" console || complain "the table does not say that it was interrupted"
grep -q "^attest: interrupted" errors || complain "stderr does not say that it was interrupted"
tail -n 1 stopped.jsonl | grep -q '"interrupted":true' || complain "the summary does not say that it was interrupted"
grep -q 'message="the run was interrupted' stopped.xml || complain "JUnit does not say that it was interrupted"
[ -z "$(comm -23 <(echo "$had") <(on_disk stopped.jsonl))" ] || complain "an interrupted run lost verdicts"

# A reader that goes away ends nothing.
{ "${command[@]}" --json pipe.jsonl || true; } 2>/dev/null | head -n 1 >/dev/null
[ "$(strip pipe.jsonl | wc -l)" = 600 ] || complain "a closed pipe: $(cat pipe.jsonl* 2>/dev/null | wc -l) lines are left"

# So does a bench, with the samples that it has.
"$attest" bench "seq=64 dim=16" --backend eigen,example --threads 1 --repetitions 1000 --min-time 0.005 --progress \
  --json bench.json >console 2>errors &
victim=$!
for _ in $(seq 200); do
  grep -q "sample 9$" errors && break
  sleep 0.1
done
kill -INT "$victim"
status=0
wait "$victim" || status=$?
[ "$status" = 130 ] || complain "an interrupted bench: exit code $status, $(tail -n 2 errors)"
grep -q '"interrupted": "true"' bench.json || complain "the file of an interrupted bench does not say so"
grep -q '^  eigen  *[0-9]' console || complain "an interrupted bench prints no speed of what it measured"
"$attest" compare bench.json bench.json >/dev/null || complain "the file of an interrupted bench can't be compared"

# The second interrupt ends at once, also while a backend hangs.
echo "seq=2 dim=2" >one.cases
"$hostile" check --isolate --timeout 60 --backend hangs --suite-file one.cases >/dev/null 2>errors &
victim=$!
sleep 0.7
kill -INT "$victim"
sleep 0.2
kill -INT "$victim" 2>/dev/null || complain "the first interrupt ended a hanging run"
SECONDS=0 status=0
wait "$victim" || status=$?
[ "$status" = 130 ] && [ "$SECONDS" -le 3 ] || complain "interrupted twice: exit code $status after $SECONDS s"
grep -q "^attest: stopped at once" errors || complain "interrupted twice, and no word of it"

# Two runs on one file: the second is refused, and the first is unharmed.
"${command[@]}" --json two.jsonl >/dev/null 2>&1 &
first=$!
sleep 0.5
for again in "" --resume; do
  status=0
  "${command[@]}" --json two.jsonl $again >/dev/null 2>errors || status=$?
  [ "$status" = 2 ] && grep -q "two.jsonl: another run is writing it" errors || complain "a second run $again: exit code $status, $(cat errors)"
done
wait "$first" || true
cmp <(strip two.jsonl) <(strip whole.jsonl) || complain "the first of two runs was harmed"

# Verdicts of another program, of other libraries, options or threads are not taken, and stay as they were.
cp "$attest" changed && printf x >>changed # not a commit: a byte
"$attest" check "seq=4 dim=4" --backend example,eigen --threads 1 --json other.jsonl >/dev/null
cp other.jsonl as_it_was
refused() { # a piece of the reason, then the command
  local reason=$1 status=0
  shift
  "$@" check "seq=4 dim=4" --json other.jsonl --resume "${options[@]}" >/dev/null 2>errors || status=$?
  [ "$status" = 2 ] && [ "$(wc -l <errors)" = 1 ] && grep -q "can't go on from here: .*$reason" errors ||
    complain "$reason: exit code $status, $(cat errors)"
  cmp -s other.jsonl as_it_was || complain "$reason: the file has changed"
  ls other.jsonl.part* 2>/dev/null && complain "$reason: an unfinished file"
  return 0
}
options=(--backend example --threads 1)
refused "another build of attest" ./changed
refused "environment none, not OPENBLAS_CORETYPE" env OPENBLAS_CORETYPE=Haswell "$attest"
for variable in GOTO_NUM_THREADS KMP_AFFINITY ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES BLIS_NUM_THREADS CL_CONFIG_CPU_TBB_NUM_WORKERS; do
  refused "environment none, not $variable" env "$variable=1" "$attest"
done
if [ "$(nproc)" -gt 1 ]; then
  first=$(taskset -cp $$ | sed 's/.*: //; s/[^0-9].*//')
  refused "processors $(nproc), not 1" taskset -c "$first" "$attest"
fi
options=(--backend example --threads 2)
refused "threads 1, not 2" "$attest"
options=(--backend example --threads 1 --bitwise)
refused "bitwise no, not yes" "$attest"
options=(--backend example --threads 1 --isolate)
refused "isolation none, not steps" "$attest"
options=(--backend example --threads 1)
library=$(ldd "$attest" | sed -n 's/.*libfmt[^ ]* => \([^ ]*\) .*/\1/p')
if [ -n "$library" ]; then # a byte behind a library's end changes nothing but its contents
  mkdir libraries
  cp -L "$library" libraries/
  printf x >>"libraries/${library##*/}"
  refused "the libraries that are loaded have changed" env LD_LIBRARY_PATH="$work/libraries" "$attest"
fi
echo "not a result" >notes.txt
status=0
"$attest" check "seq=4 dim=4" --backend example --json notes.txt --resume >/dev/null 2>errors || status=$?
[ "$status" = 2 ] && grep -q "is no file of verdicts" errors && grep -q "not a result" notes.txt ||
  complain "a file of somebody else's: exit code $status"

# What a killed run of other conditions left is gone when another has begun anew and come to its end: so can --resume.
(ulimit -f 16 && exec "$attest" check --suite smoke --backend example --threads 1 --json anew.jsonl --junit anew.xml) >/dev/null 2>&1 || true
: >anew.xml.part1
ls anew.jsonl.part* >/dev/null || complain "beginning anew: nothing to be replaced"
"$attest" check "seq=4 dim=4" --backend example --threads 2 --json anew.jsonl --junit anew.xml >/dev/null
ls anew.*.part* 2>/dev/null && complain "beginning anew: unfinished files are left"
"$attest" check "seq=4 dim=4" --backend example --threads 2 --json anew.jsonl --resume >/dev/null ||
  complain "beginning anew: nothing goes on from there"

# A file of tensors under the same name with other contents is another case.
cp "$golden/walkthroughs/seed_42.safetensors" tensors.safetensors
"$attest" check tensors.safetensors --backend example --json tensors.jsonl >/dev/null
"$attest" check tensors.safetensors --backend example --json tensors.jsonl --resume >console
grep -q "2 of them taken over" console || complain "the same tensors are not taken over"
cp "$golden/walkthroughs/three_tokens_f32.safetensors" tensors.safetensors
"$attest" check tensors.safetensors --backend example --json tensors.jsonl --resume >console
grep -q "taken over" console && complain "other tensors under the same name are taken over"

# A full disk: the table is printed, what was written stays, and the run goes on from there.
status=0
(ulimit -f 16 && exec "$attest" check --suite smoke --backend example --json full.jsonl --junit full.xml) 2>errors | cat >console ||
  status=$?
[ "$status" = 1 ] || complain "a full disk: exit code $status"
grep -q "^[0-9]* passed, 0 failed, [0-9]* skipped$" console || complain "a full disk: no table"
grep -q "full.jsonl: could not be written: File too large; what was written before is in full.jsonl.part" errors ||
  complain "a full disk: $(cat errors)"
[ "$(on_disk full.jsonl | wc -l)" -gt 10 ] || complain "a full disk: what was written is gone"
"$attest" check --suite smoke --backend example --json full.jsonl --resume >console
grep -q "of them taken over" console && [ "$(grep -c '"kind":"verdict"' full.jsonl)" = "$lines" ] || complain "after a full disk: $(tail -n 3 console)"

# Standard output that can't be written is an error of its own; the file is whole.
for output in /dev/full closed; do
  status=0
  if [ "$output" = closed ]; then
    "$attest" check --suite smoke --backend example --json output.jsonl >&- 2>errors || status=$?
  else
    "$attest" check --suite smoke --backend example --json output.jsonl >$output 2>errors || status=$?
  fi
  [ "$status" = 1 ] && grep -q "^attest: standard output could not be written" errors || complain "output to $output: exit code $status"
  [ "$(grep -c . output.jsonl)" = $((lines + 2)) ] || complain "output to $output: $(grep -c . output.jsonl) lines in the file"
done

# A crash without isolation says in what, and ends with its signal. What was found before stays.
printf '%s\n' "seq=2 dim=2" "seq=3 dim=2" >crash.cases
for crash in "segfault 139 Segmentation fault" "aborts 134 Aborted"; do
  read -r backend code words <<<"$crash"
  status=0
  { # the shell's own word on the signal
    (ulimit -c 0; exec "$hostile" check --backend none,"$backend" --suite-file crash.cases --json "$backend.jsonl") >/dev/null 2>errors ||
      status=$?
  } 2>/dev/null
  [ "$status" = "$code" ] || complain "$backend: exit code $status, not $code"
  grep -q "^attest: $words in backend $backend on 'seq=2 dim=2'$" errors || complain "$backend: no word of its case: $(cat errors)"
done

# So does a bench.
for crash in "segfault 139 Segmentation fault" "aborts 134 Aborted"; do
  read -r backend code words <<<"$crash"
  status=0
  {
    (ulimit -c 0; exec "$hostile" bench "seq=2 dim=2" --backend "$backend" --threads 1) >/dev/null 2>errors || status=$?
  } 2>/dev/null
  [ "$status" = "$code" ] || complain "bench of $backend: exit code $status, not $code"
  grep -q "^attest: $words in backend $backend on 'seq=2 dim=2'$" errors || complain "bench of $backend: no word of its case: $(cat errors)"
done
{ (ulimit -c 0; exec "$hostile" check "seq=2 dim=2" --backend segfault) >/dev/null 2>errors || true; } 2>/dev/null
grep -q "^attest: with --isolate a crash is a verdict" errors || complain "check of a crash: no word of --isolate"

[ "$failures" = 0 ] && echo "resume: all as expected, $kills kills"
exit "$((failures > 0))"
