#!/usr/bin/env bash
# runs.sh ATTEST HOSTILE_ATTEST [KILLS]: `attest check` and `attest fuzz` on the ranks of an MPI job: the same verdicts in the same
# order as a run by itself, whoever is killed, interrupted, crashes or is asked for nonsense. The commands of harness/MPI.md run
# here, too. KILLS: how often a rank is killed, 20 for the full proof. About a minute with 3.
set -euo pipefail
attest=$(realpath "$1") hostile=$(realpath "$2") kills=${3:-3}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../cli/environment.sh"
. "$here/../docs/documents.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failures=0
complain() { echo "runs: $*" >&2; failures=$((failures + 1)); }
ranks() { # N COMMAND...: bound to no core, so that all ranks and a run by itself have the same processors
  local n=$1
  shift
  timeout 100 mpirun --oversubscribe --bind-to none -n "$n" "$@"
}
children() { cat "/proc/$1/task/$1/children" 2>/dev/null | tr ' ' '\n' | grep . || true; } # PROCESS
# Verdicts without their times, in their order.
strip() { grep '"kind":"verdict"' "$1" | sed 's/"seconds":{[^}]*}//'; }
untimed() { sed 's/ time="[^"]*"//g' "$1"; }
# What a terminal shows, without the seconds and the memory that was free.
table() { sed 's/ verdicts in .*//; s/, [0-9.]* GiB of memory for all//' "$1"; }

# The same verdicts, JUnit, table and exit code on 1, 2 and 4 ranks: with refusals and inconclusive ones, a file, wrong backends, and
# backends that crash in their workers.
compare() { # NAME RANKS PROGRAM OPTIONS...
  local name=$1 sizes=$2 program=$3 n whole=0 status
  shift 3
  "$program" check "$@" --threads 1 --json "$name.jsonl" --junit "$name.xml" >"$name.table" 2>/dev/null || whole=$?
  [ "$(strip "$name.jsonl" | wc -l)" -gt 20 ] || complain "$name: nothing to compare"
  for n in $sizes; do
    status=0
    ranks "$n" "$program" check "$@" --threads 1 --json "$name-$n.jsonl" --junit "$name-$n.xml" >"$name-$n.table" 2>errors || status=$?
    [ "$status" = "$whole" ] || complain "$name on $n ranks: exit code $status, by itself $whole: $(cat errors)"
    diff <(strip "$name.jsonl") <(strip "$name-$n.jsonl") >diff || complain "$name on $n ranks: other verdicts: $(head -n 4 diff)"
    diff <(untimed "$name.xml") <(untimed "$name-$n.xml") >diff || complain "$name on $n ranks: another JUnit: $(head -n 4 diff)"
    diff <(table "$name.table") <(table "$name-$n.table") >diff || complain "$name on $n ranks: another table: $(head -n 4 diff)"
    ls "$name-$n".*part* 2>/dev/null && complain "$name on $n ranks: unfinished files are left"
  done
  return 0
}
"$attest" list cases --suite matrix | awk 'NR % 60 == 7' >matrix.cases
compare smoke "1 2 4" "$attest" --suite smoke --suite walkthroughs --backend example,eigen
compare matrix "1 2 4" "$attest" --suite-file matrix.cases --backend eigen,simd
compare wrong "2 3" "$hostile" --suite smoke --isolate --no-shrink --backend none,rounds_up,segfault,throws_an_int
grep -q '"status":"crashed"' wrong-3.jsonl || complain "no worker crashed"

# The document's commands, of its sections check-and-fuzz and groups-of-ranks-for-one-case.
mkdir bin document
ln -s "$attest" bin/attest
commands "$root/harness/MPI.md" | awk -F '\t' '{ print "MPI.md:" $1 "\t" $3 }' >commands
[ "$(wc -l <commands)" = 4 ] || complain "the document has other commands"
(cd document && PATH=$work/bin:$PATH run_commands ../log <../commands) || complain "commands of harness/MPI.md failed"
[ "$(grep -c '"kind":"verdict"' document/ranks.jsonl)" = $((2 * $(grep -c "^[^#]" "$root/tests/cases/smoke.cases"))) ] ||
  complain "the document's run is not all of smoke"

# Groups: a backend that spans them beside ordinary ones, with workers and without; elsewhere it alone can't be had.
"$hostile" check --suite smoke --filter '^[a-z]* (?!dtype=)' --backend none --threads 1 --json alone.jsonl >console || true
for isolate in "" --isolate; do
  status=0
  ranks 4 "$hostile" check --suite smoke --filter '^[a-z]* (?!dtype=)' --backend none,spans --threads 1 --ranks-per-case 2 --json group.jsonl $isolate >console 2>errors || status=$?
  [ "$status" = 0 ] || complain "groups $isolate: exit code $status: $(tail -n 2 console errors)"
  for name in none spans; do
    diff <(strip alone.jsonl | grep -o '"number":[0-9]*,"status":"[a-z]*"') \
      <(strip group.jsonl | grep "\"backend\":\"$name\"" | grep -o '"number":[0-9]*,"status":"[a-z]*"') >diff ||
      complain "groups $isolate: other verdicts of $name: $(head -n 3 diff)"
  done
done
status=0
ranks 2 "$hostile" check "seq=4 dim=4" --threads 1 --backend none,spans >console 2>errors || status=$?
[ "$status" = 2 ] && grep -q "backend spans can't be had here: attention that spans processes: start it as" errors ||
  complain "no groups: exit code $status: $(cat errors)"

# A search is divided: the same seed on as many ranks, the same cases; wrong backends are found.
for again in 1 2; do
  ranks 3 "$hostile" fuzz --backend rounds_up --count 13 --seed 4 --threads 1 --out "found-$again" >"fuzz-$again" 2>errors && status=0 || status=$?
  [ "$status" = 1 ] && grep -q "^seed 4: 13 cases" "fuzz-$again" || complain "fuzz on ranks: exit code $status: $(cat errors "fuzz-$again")"
done
# How small a failure is made depends on the time that there is.
same='^seed|^classes|^[0-9]+ options'
diff <(grep -E "$same" fuzz-1) <(grep -E "$same" fuzz-2) || complain "fuzz on ranks: the same seed found other cases"
[ -s found-1 ] || complain "fuzz on ranks: --out has nothing"

# A rank that is killed: what rank 0 had written stays, and a run that goes on comes to the same verdicts, be it on ranks or by
# itself. Which rank and when is random.
"$attest" list cases --suite matrix | sed -n 1,150p >many.cases
command=(check --isolate --backend none,rounds_up --no-shrink --suite-file many.cases --threads 1)
"$hostile" "${command[@]}" --json whole.jsonl >whole.table || true
[ "$(strip whole.jsonl | wc -l)" = 300 ] || complain "the whole run: $(tail -n 1 whole.table)"
# Those on disk, cut lines left out.
on_disk() {
  { cat "$1" "$1".part* 2>/dev/null || true; } | { grep -E '^\{"kind":"(verdict|kept)".*\}$' || true; } |
    sed 's/"kind":"[a-z]*"//; s/"seconds":{[^}]*}//; s/"error_map":.*"rows_checked"/"rows_checked"/' | sort -u
}
RANDOM=11
met=0
for kill in $(seq "$kills"); do
  rm -f killed.jsonl*
  mpirun --oversubscribe --bind-to none -n 3 "$hostile" "${command[@]}" --json killed.jsonl >console 2>errors &
  job=$!
  until [ "$(on_disk killed.jsonl | wc -l)" -gt 3 ] || ! kill -0 "$job" 2>/dev/null; do sleep 0.02; done
  sleep "0.$(printf '%03d' $((RANDOM % 500)))"
  mapfile -t processes < <(children "$job")
  on_disk killed.jsonl >before
  if [ "${#processes[@]}" = 3 ]; then
    victim=$((RANDOM % 3))
    kill -9 "${processes[victim]}" 2>/dev/null && met=$((met + 1))
  fi
  SECONDS=0 status=0
  wait "$job" || status=$?
  [ "$SECONDS" -le 10 ] || complain "kill $kill: the job went on for $SECONDS s"
  if [ ! -e killed.jsonl ] || ! grep -q '"kind":"summary"' killed.jsonl || grep -q '"interrupted":true' killed.jsonl; then
    [ "$status" != 0 ] && [ "$status" != 1 ] || complain "kill $kill: exit code $status"
    grep -q -- "--resume goes on" errors || complain "kill $kill: no word of how to go on: $(cat errors)"
  fi
  on_disk killed.jsonl >after
  lost=$(comm -23 before after | wc -l)
  [ "$lost" = 0 ] || complain "kill $kill: $lost verdicts that were on disk are gone"
  status=0
  if [ $((kill % 2)) = 0 ]; then
    "$hostile" "${command[@]}" --json killed.jsonl --resume >console 2>errors || status=$?
  else
    ranks 2 "$hostile" "${command[@]}" --json killed.jsonl --resume >console 2>errors || status=$?
  fi
  [ "$status" = 1 ] || complain "kill $kill: going on ended with $status: $(cat errors)"
  diff <(strip whole.jsonl) <(strip killed.jsonl) >diff || complain "kill $kill: other verdicts after going on: $(head -n 2 diff)"
  ls killed.jsonl.part* 2>/dev/null && complain "kill $kill: unfinished files are left"
done
[ "$met" = "$kills" ] || echo "runs: $((kills - met)) of $kills jobs had ended before a rank was killed"

# Rank 0 of a job that is one group hands out to nobody else, and has its last word all the same.
mpirun --oversubscribe --bind-to none -n 2 "$hostile" "${command[@]}" --ranks-per-case 2 --json lonely.jsonl >console 2>errors &
job=$!
until [ "$(on_disk lonely.jsonl | wc -l)" -gt 3 ] || ! kill -0 "$job" 2>/dev/null; do sleep 0.02; done
mapfile -t processes < <(children "$job")
if [ "${#processes[@]}" = 2 ] && kill -9 "${processes[0]}" 2>/dev/null; then
  wait "$job" || true
  grep -q -- "--resume goes on" errors || complain "one group: no word of how to go on: $(cat errors)"
else
  echo "runs: the job of one group had ended before its rank 0 was killed"
fi

# Ctrl-C: a valid file that says so, and what it has is gone on from.
mpirun --oversubscribe --bind-to none -n 2 "$hostile" "${command[@]}" --json stopped.jsonl --junit stopped.xml >console 2>errors &
job=$!
until [ "$(on_disk stopped.jsonl | wc -l)" -gt 3 ]; do sleep 0.02; done
kill -INT "$job"
status=0
wait "$job" || status=$?
[ "$status" != 0 ] || complain "interrupted: exit code $status"
tail -n 1 stopped.jsonl | grep -q '"interrupted":true' || complain "interrupted: the file does not say so: $(cat errors)"
grep -q 'message="the run was interrupted' stopped.xml || complain "interrupted: JUnit does not say so"
grep -q "^INTERRUPTED: [0-9]* of 300 verdicts" console || complain "interrupted: the table does not say so"
grep -q -- '--resume goes on' errors || complain "interrupted: $(cat errors)"
ranks 2 "$hostile" "${command[@]}" --json stopped.jsonl --resume >console 2>errors || true
grep -q "of them taken over" console || complain "interrupted: nothing was taken over"
diff <(strip whole.jsonl) <(strip stopped.jsonl) >diff || complain "interrupted: other verdicts after going on: $(head -n 2 diff)"

# Without --isolate a backend that crashes takes its rank along, and the job with it.
status=0
ranks 2 "$hostile" check --suite smoke --backend none,segfault --threads 1 --json crash.jsonl >console 2>errors || status=$?
[ "$status" != 0 ] && [ "$status" != 1 ] && grep -q "Segmentation fault in backend segfault" errors || complain "a crash: exit code $status"
grep -q -- "with --isolate a crash is a verdict" errors || complain "a crash: no word of --isolate"

# A worker is no rank, whatever its backend may do with MPI.
mpirun --bind-to none -n 1 "$hostile" check "seq=2 dim=2" --isolate --timeout 3 --backend hangs --no-shrink >/dev/null 2>&1 &
job=$!
worker=
for _ in $(seq 100); do
  rank=$(children "$job" | head -n 1)
  for child in $(children "${rank:-none}"); do
    ! grep -zqx worker "/proc/$child/cmdline" 2>/dev/null || worker=$child
  done
  [ -z "$worker" ] || break
  sleep 0.02
done
if [ -n "$worker" ]; then
  grep -zq '^OMPI_COMM_WORLD_RANK=' "/proc/$rank/environ" || complain "the rank's environment has changed its names"
  ! grep -zE '^(OMPI_|PMIX_|PMI_)' "/proc/$worker/environ" >left || complain "a worker is told of its rank's job: $(tr '\0' ' ' <left)"
else
  complain "no worker was met"
fi
wait "$job" || true

# Nonsense: one line from rank 0 and exit code 2, whichever rank it is that can't go on; nothing is written.
refused() { # TEXT COMMAND...
  local text=$1 status=0
  shift
  timeout 60 "$@" >console 2>errors || status=$?
  [ "$status" = 2 ] && [ "$(grep -c '^attest: ' errors)" = 1 ] && grep -qF -- "$text" errors ||
    complain "exit code $status, not 2 with \"$text\": $(cat errors)"
  ! ls none* 2>/dev/null || complain "$text: something was written"
}
mpi=(mpirun --oversubscribe --bind-to none)
one="$attest check --backend example --threads 1 --json none.jsonl"
mkdir away
printf 'seq=2 dim=2\nseq=3 dim=2\n' >both.cases
echo "seq=4 dim=2" >away/both.cases
refused "rank 1 on $(hostname): matrix.cases" "${mpi[@]}" -n 1 $one --suite-file matrix.cases : -n 1 -wdir away $one --suite-file matrix.cases
refused "has other cases than rank 0" "${mpi[@]}" -n 1 $one --suite-file both.cases : -n 1 --wdir "$work/away" $one --suite-file both.cases
cp "$attest" changed && printf x >>changed
refused "has other a build" "${mpi[@]}" -n 1 $one --suite smoke : -n 1 "$work/changed" ${one#* } --suite smoke
refused "--ranks-per-case 2: 3 rank(s) make no whole groups" "${mpi[@]}" -n 3 $one --suite smoke --ranks-per-case 2
refused "--ranks-per-case 2: there is one process" $one --suite smoke --ranks-per-case 2
refused "bench times on one rank" "${mpi[@]}" -n 2 "$attest" bench "seq=4 dim=4" --backend example --threads 1 --json none.json
refused "times would be of their waiting" "${mpi[@]}" -n 2 "$attest" bench "seq=4 dim=4" --backend example --threads "$(nproc)" --json none.json
refused 'is no ECMAScript regular expression' "${mpi[@]}" -n 2 $one --suite smoke --filter '('
refused "unknown option \"--sweet\"" "${mpi[@]}" -n 2 $one --sweet smoke
refused "unknown backend" "${mpi[@]}" -n 2 "$attest" check --suite smoke --backend exemple
refused "standard input reaches rank 0 alone" "${mpi[@]}" -n 2 $one -

# More threads than processors are told of, once; ranks say nothing twice.
ranks 2 "$attest" check "seq=4 dim=4" --backend example --threads $(nproc) >console 2>errors
[ "$(grep -c "they wait for one another" errors)" = 1 ] && [ "$(grep -c "1 passed" console)" = 1 ] || complain "crowded: $(cat errors console)"

[ "$failures" = 0 ] && echo "runs: on ranks as by itself, $met kills"
exit "$((failures > 0))"
