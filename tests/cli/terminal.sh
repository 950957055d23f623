#!/usr/bin/env bash
# terminal.sh ATTEST HOSTILE_ATTEST: what a terminal gets and a pipe doesn't; and what goes to which stream where standard
# output is for a program.
set -uo pipefail
attest=$(realpath "$1") hostile=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/environment.sh"
cases=$(realpath "$here/../cases")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset NO_COLOR GITHUB_ACTIONS
export TERM=xterm COLUMNS=200
failures=0
complain() { echo "terminal: $*" >&2; failures=$((failures + 1)); }
# Runs a command on a terminal of its own; what is drawn there stands in the file `drawn`.
on_terminal() { script -qec "stty cols 200; $1" /dev/null </dev/null >drawn 2>&1; }
has() { grep -qF -- "$2" "$1" || complain "$3: no \"$2\" in: $(head -c 400 "$1" | cat -v)"; }
hasnt() { ! grep -qF -- "$2" "$1" || complain "$3: \"$2\" in: $(head -c 400 "$1" | cat -v)"; }
escape=$(printf '\033')

# A pipe: no progress, no colours.
"$attest" check --suite smoke --backend example >out 2>err || complain "smoke: exit code $?"
[ ! -s err ] || complain "a pipe: stderr has $(head -c 200 err)"
hasnt out "$escape" "a pipe"
has out "right: example; " "a pipe"
hasnt out "$(printf '\r')" "a pipe"

# A terminal: a line that redraws itself, with a rate, and nothing of it left; colours.
on_terminal "'$attest' check --suite matrix --filter 'example .*seq=[0-9]* ' --backend example --no-shrink"
has drawn "error/bound up to" "a terminal"
grep -qE "[0-9]+ of [0-9]+ verdicts, [0-9]+/s, [0-9]+ (s|min) left, error/bound up to [0-9.e-]+" drawn ||
  complain "a terminal: no progress: $(head -c 300 drawn | cat -v)"
has drawn "$escape[32mright: example; " "a terminal"
tail -n 1 drawn | grep -qF "$escape" && complain "a terminal: the last line is not plain"
on_terminal "NO_COLOR=1 '$attest' check --suite smoke --backend example"
hasnt drawn "$escape[32m" "NO_COLOR"
on_terminal "NO_COLOR= '$attest' check --suite smoke --backend example"
has drawn "$escape[32m" "an empty NO_COLOR"
on_terminal "stty cols 30; '$attest' check --suite matrix --filter 'example .*seq=[0-9]* ' --backend example --no-shrink"
tr '\r' '\n' <drawn | sed "s/$escape\[K//g" | awk '/ of [0-9]+ v/ { ++drawn; wide = wide || length > 29 }
  END { exit wide || !drawn }' || complain "a narrow terminal: $(tr '\r' '\n' <drawn | head -n 5 | cat -v)"
on_terminal "NO_COLOR=1 '$attest' check 'seq=4 dim=4' --backend example --color always"
has drawn "$escape[32m" "--color always on a terminal"
on_terminal "'$attest' check 'seq=4 dim=4' --backend example --color never"
hasnt drawn "$escape[32m" "--color never"
on_terminal "TERM=dumb '$attest' check --suite smoke --backend example"
hasnt drawn "$escape" "a dumb terminal"
"$attest" check "seq=4 dim=4" --backend example --color always >out
has out "$escape[32mright: example; " "--color always in a pipe"
on_terminal "'$attest' fuzz --backend example --time 2s --seed 1"
grep -qE "[0-9]+ cases, [0-9]+/s, [0-9] s left, error/bound up to" drawn || complain "fuzz: no progress: $(head -c 300 drawn | cat -v)"
has drawn "nothing wrong found: example; " "fuzz"
on_terminal "'$attest' bench 'seq=64 dim=16' 'seq=65 dim=16' --backend example --threads 1 --repetitions 2 --min-time 0.001"
has drawn "0 of 2 cases: seq=64 dim=16: " "bench"
has drawn "1 of 2 cases, " "bench"

on_terminal "'$hostile' shrink 'heads=8/2 seq=65x300 dim=64/48 softcap=30 mask=bool:BHQK:random(0.5)' --backend throws_an_int"
grep -qE "[0-9]+ smaller cases tried, ([0-9]+/s, )?[0-9]+ s left" drawn || complain "shrink: no progress: $(head -c 400 drawn | cat -v)"
has drawn "none of the next smaller ones fails" "shrink"
"$hostile" shrink "seq=65x300 dim=64" --backend throws_an_int >out 2>err
[ ! -s err ] && has out "smaller cases tried in" "shrink in a pipe" || complain "shrink in a pipe: $(head -c 200 err)"
hasnt out "$(printf '\r')" "shrink in a pipe"
# The wrong backends are a program of the tests, which a build with sanitizers has not.
if [ -x "$(dirname "$attest")/attest-mutants" ]; then
  on_terminal "timeout -s KILL 4 '$attest' mutants --only mistakes"
  grep -qE "[0-9]+ of [0-9]+ cases, ([0-9]+/s, )?([0-9]+ (s|min) left: )?smoke, [0-9]+ not caught yet" drawn || complain "mutants: no progress: $(head -c 400 drawn | cat -v)"
fi

# The first failure is there while the run goes on, and the shrinking says that it goes on.
on_terminal "'$hostile' check --backend right_the_first_time,none --suite-file '$cases/smoke.cases'"
awk '/FAIL/ && !fail { fail = NR } /wrong: right_the_first_time; right: none/ { answer = NR } END { exit !(fail && answer && fail < answer) }' \
  RS='\n' drawn || complain "a failure is not told before the answer: $(head -c 500 drawn | cat -v)"
has drawn "$escape[1;31mFAIL" "a failure"
grep -qE "verdicts, .*, [0-9]+ failed" drawn || complain "progress after a failure: $(head -c 400 drawn | cat -v)"
has drawn "making the first failures small" "progress"

# A file that changes begins the run again; whoever ends it gets the exit code of the last run.
until_there() {
  for _ in $(seq 300); do
    ! grep -qF -- "$1" watched || return 0
    sleep 0.1
  done
  complain "--watch: no \"$1\" in: $(head -c 400 watched)"
}
echo "seq=4 dim=4" >watched.cases
"$hostile" check --watch --suite-file watched.cases --backend right_the_first_time,none --no-shrink >watched 2>&1 &
watcher=$!
until_there "waiting for a change of 1 file; Ctrl-C ends"
printf 'seq=4 dim=4\nseq=5 dim=4\n' >watched.cases
until_there "watched.cases changed"
for _ in $(seq 300); do [ "$(grep -c 'waiting for a change' watched)" -ge 2 ] && break || sleep 0.1; done
kill -TERM "$watcher"
status=0
wait "$watcher" || status=$?
[ "$status" = 1 ] && has watched "2 passed, 2 failed, 0 skipped" "--watch" || complain "--watch: exit code $status: $(cat watched)"

# Standard output for a program: nothing else is there.
"$attest" check "seq=4 dim=4" "seq=5 dim=4" --backend example --json - >out 2>err || complain "--json -: exit code $?"
[ "$(grep -c '^{"kind":"' out)" = 4 ] && [ "$(wc -l <out)" = 4 ] || complain "--json -: $(cat out)"
has err "right: example; 2 pass" "--json -"
"$attest" check "seq=4 dim=4" --backend example --format csv >out 2>err || complain "--format csv: exit code $?"
[ "$(head -n 1 out)" = "backend,pass,fail,refused,inconclusive,error/bound,largest at" ] && [ "$(wc -l <out)" = 2 ] ||
  complain "--format csv: $(cat out)"
has err "right: example; " "--format csv"
"$attest" check "seq=4 dim=4" --backend example --format markdown 2>/dev/null >out
[ "$(sed -n 2p out)" = "|---|---:|---:|---:|---:|---:|---|" ] || complain "--format markdown: $(cat out)"
"$attest" bench "seq=64 dim=16" --backend example --threads 1 --repetitions 2 --min-time 0.001 --format csv >out 2>err
[ "$(wc -l <out)" = 2 ] && grep -q "^seq=64 dim=16,example,[0-9.]*," out || complain "bench --format csv: $(cat out)"
has err "roof, measured now" "bench --format csv"

# Lines out, lines in; each once, with what the filter keeps.
"$attest" check --suite smoke --suite bugs --filter 'example .*causal' --shard 1/2 --backend example --list >lines
[ -s lines ] && [ -z "$(sort lines | uniq -d)" ] && ! grep -v causal lines || complain "--list: $(head -n 3 lines)"
"$attest" check - --backend example --no-shrink -q <lines >out || complain "check -: exit code $?"
has out "$(wc -l <lines) passed, 0 failed" "check -"
"$attest" check --suite walkthroughs --list | "$attest" check - --backend example -q | grep -qE "^[0-9]+ passed, 0 failed" ||
  complain "files that are listed can't be read back"

# A summary is added to, and annotations name the line of a suite. Failures of both are told, with their place.
echo before >summary.md
cp "$cases/smoke.cases" own.cases
"$hostile" check --backend right_the_first_time,none --suite-file own.cases --no-shrink --summary summary.md --annotations github >out
[ "$(head -n 1 summary.md)" = before ] && grep -q '^## attest: wrong$' summary.md || complain "--summary: $(head -n 5 summary.md)"
has summary.md "| none |" "--summary"
line=$(grep -o '^::error file=own.cases,line=[0-9]*,title=attest%3A right_the_first_time fail::' out | head -n 1 | grep -oE '[0-9]+' | head -n 1)
[ -n "$line" ] && grep -qF -- "$(sed -n "${line}p" own.cases | sed 's/ *#.*//')" <<<"$(grep "line=$line," out)" ||
  complain "--annotations: $(grep '^::' out | head -n 3)"
[ "$(grep -c '^::error ' out)" -le 10 ] || complain "--annotations: more than are shown"
"$attest" check "seq=4 dim=4" --backend example --summary "$work/nowhere/a.md" >out 2>err
[ $? = 2 ] && has err "nowhere/a.md: can't be written" "--summary"

# Names of files go through everything.
rude=$(printf 'a\033[2J%%\n::error::b|`<c>.cases')
printf 'seq=4 dim=4\n' >"$rude"
"$hostile" check --backend right_the_first_time --suite-file "$rude" --no-shrink --summary rude.md --annotations github >out 2>&1
[ "$(grep -c '^::' out)" = "$(grep -c '^::error file=' out)" ] || complain "a name begins a command: $(grep '^::' out)"
hasnt out "$escape" "a rude name"
hasnt rude.md "<c>" "a rude name"
echo "terminal: $failures complaint(s)"
[ "$failures" = 0 ]
