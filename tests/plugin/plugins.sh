#!/usr/bin/env bash
# plugins.sh ATTEST FOLDER: --plugin on the command line, with the libraries in FOLDER. Examples are right and take what they
# can; wrong kernels are caught as in the tree; a library that breaks a rule of the interface ends in one line that names it,
# and one that crashes takes nobody along.
set -uo pipefail
attest=$(realpath "$1") folder=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../cli/environment.sh"
root=$here/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
complain() { echo "plugins: $*" >&2; failures=$((failures + 1)); }
cd "$work"
for library in "$folder"/lib*.so; do ln -s "$library" .; done

# expect CODE TEXT ARGUMENT...: the exit code, and a line of the output that has the text.
expect() {
  local code=$1 text=$2 status=0
  shift 2
  "$attest" "$@" >output 2>&1 </dev/null || status=$?
  [ "$status" = "$code" ] || complain "exit code $status instead of $code: attest $*: $(tail -n 2 output)"
  grep -qF -- "$text" output || complain "no line has \"$text\": attest $*: $(tail -n 3 output)"
}
# one_line TEXT ARGUMENT...: a user's error is one line, with exit code 2.
one_line() {
  expect 2 "$@"
  [ "$(wc -l <output)" = 1 ] || complain "not one line: attest ${*:2}: $(cat output)"
}

# What can't be used, and why.
line='seq=4 dim=4'
one_line "plug-in ./nobody.so: there is no such file" check --plugin ./nobody.so "$line"
echo text >text.so
one_line "plug-in text.so: it can't be loaded: file too short" check --plugin text.so "$line"
while read -r rule text; do
  one_line "plug-in libbroken_$rule.so: $text" check --plugin "libbroken_$rule.so" "$line"
done <<'END'
missing_symbol it can't be loaded: undefined symbol: nobody_has_this
entry_missing it exports no attest_plugin_entry, so it is no plug-in of attest
entry_null it doesn't speak version 2 of the interface: build it with this attest's attest_plugin.h
abi_1 it speaks version 1 of the interface, this attest 2: build it with this attest's attest_plugin.h
plugin_small its attest_plugin has 24 bytes where 112 or more are expected
call_small its attest_call has 80 bytes where 352 or more are expected
no_backend it has no backend
null_backend its backend 1 is NULL
backend_small its backend 1 has 64 bytes, and attest_plugin says 136
no_name its backend 1 has no name
bad_name its backend 1 is called "../x\x1b[2J": a name is [a-z][a-z0-9_]*, 64 characters at most
called_reference a backend may not be called "reference"
called_eigen its backend "eigen" is called as one of attest's own; give it another name
twice two of its backends are called "broken"
no_run backend "broken" has no `run`
create_alone backend "broken" has `create` without `destroy`
crashes_in_constructor loading it failed: ended by Segmentation fault
exits_in_constructor loading it failed: its process ended with exit code 0
END
for command in "bench --plugin libbroken_crashes_in_constructor.so '$line'" "fuzz --plugin libbroken_crashes_in_constructor.so" \
  "list backends --plugin libbroken_crashes_in_constructor.so" "shrink --plugin libbroken_crashes_in_constructor.so '$line'" \
  "explain --plugin libbroken_crashes_in_constructor.so '$line'"; do
  eval "one_line 'loading it failed' $command"
done
one_line 'called as one of libexample_c.so' check --plugin libexample_c.so --plugin ./libexample_c.so "$line"
one_line '--no-isolate requires --plugin' check --no-isolate "$line"
one_line '--no-isolate excludes --isolate' check --isolate --no-isolate --plugin libexample_c.so "$line"
one_line '--timeout requires --isolate' check --timeout 2 --no-isolate --plugin libexample_c.so "$line"
expect 0 "1 passed" check --timeout 20 --memory 4 --plugin libexample_c.so "$line"
one_line 'explain looks at one backend: --backend NAME; the plug-in has correct, ' explain --plugin libfaulty_plugin.so "$line"
one_line 'unknown backend "exampel_c"; nearest: example_c' check --plugin libexample_c.so --backend exampel_c "$line"

# What goes wrong in a case is that case's verdict.
# Lengths as data and a cache that grows, in C. The suite has neither more nor less.
expect 0 "10 passed, 0 failed, 0 skipped" check --plugin liblaunches_plugin.so --suite launches
expect 1 "left 4 element(s) of o unwritten" check --plugin libbroken_answers.so --backend writes_nothing 'seq=1 dim=4'
expect 1 "ended by Segmentation fault in run" check --plugin libbroken_answers.so --backend crashes_in_run "$line"
expect 1 "its process ended with exit code 0 in run" check --plugin libbroken_answers.so --backend exits_in_run "$line"
expect 1 "breaks the plug-in interface: prepare returned ATTEST_OK and no plan" check --plugin libbroken_answers.so --backend no_plan "$line"
expect 1 "breaks the plug-in interface: arithmetic: exp_ulps is nan" check --plugin libbroken_answers.so --backend exp_nan "$line"
expect 1 "ran out of memory in" check --plugin libbroken_answers.so --backend out_of_memory "$line"
expect 3 "not today" check --plugin libbroken_answers.so --backend refuses "$line"
one_line "backend unavailable can't be had here: no such device here" check --plugin libbroken_answers.so --backend unavailable "$line"
one_line "backend crashes_in_create can't be had here: ended by Segmentation fault" check --plugin libbroken_answers.so --backend crashes_in_create "$line"
expect 0 "unavailable not available: no such device here" list backends --plugin libbroken_answers.so
grep -q "^example " output || complain "list backends leaves out those of the program"

# Two in one process share nothing.
for library in libexample_c.so libexample_cpp.so libfaulty_plugin.so; do
  exported=$(nm -D --defined-only "$library" | awk '$2 !~ /[WV]/ { print $3 }' | paste -sd ' ')
  [ "$exported" = attest_plugin_entry ] || complain "$library exports more than its entry: ${exported:0:200}"
done
expect 0 "2 passed" check --no-isolate --plugin libexample_cpp.so --plugin libexample_c.so "$line"

# Every command, on an example and beside a backend of the program.
expect 0 "2 passed" check --plugin libexample_c.so --backend example_c,example "$line"
expect 0 "1 passed" check --plugin libexample_c.so --no-isolate "$line"
expect 0 "example_c" bench --plugin libexample_c.so --backend example_c,example --repetitions 2 --min-time 0 --threads 1 "$line"

# A benchmark has neither its clock nor what it expects in the process of a plug-in, and says so. Its own backends are
# there where the clock is, unless all are isolated.
quick="--backend example_c,example --repetitions 2 --min-time 0 --threads 1"
timed() { # FILE TIMED_APART OPTION...
  local file=$1 apart=$2
  shift 2
  expect 0 "example_c" bench --plugin libexample_c.so $quick "$@" --json "$file" "$line"
  grep -q "\"timed_apart\": \"$apart\"" "$file" || complain "bench $*: $(grep timed_apart "$file") in its file"
}
timed apart.json example_c
grep -q "^  example_c: timed from outside of its process; run has upload and download in it" output || complain "bench does not say what it timed apart: $(cat output)"
grep -q "^  example: timed" output && complain "bench says that attest's own backend is timed apart"
timed all.json "example,example_c" --isolate
timed here.json "" --no-isolate
expect 0 "example_c timed apart in one of them" compare apart.json here.json --margin 10
"$attest" bench --plugin libexample_c.so $quick --format csv "$line" >output
grep -q ',example_c,.*,apart,' output && grep -q ',example,.*,here,' output || complain "bench --format csv: $(cat output)"

# Who stops all clocks of a process has stopped its own.
for cheat in honest patches_clocks; do
  cc -std=gnu11 -O2 -fPIC -shared -pthread -I "$root/backends/plugin" "$root/tests/exploits/cheats/$cheat.c" -lm -o "lib$cheat.so" || complain "$cheat does not compile"
done
slow=0
for try in 1 2 3 4; do # neighbours make some slow that are honest
  expect 0 "patches_clocks" bench --plugin libhonest.so --plugin libpatches_clocks.so --repetitions 5 --min-time 0.02 --threads 1 --json clocks.json "heads=2 seq=128 dim=32"
  python3 - <<'PYTHON' && slow=1 && break
import json, statistics
times = {}
for one in json.load(open("clocks.json"))["benchmarks"]:
    times.setdefault(one["name"].split("/")[0], []).append(one["real_time"])
assert statistics.median(times["patches_clocks"]) > 0.7 * statistics.median(times["honest"]), times
PYTHON
done
[ "$slow" = 1 ] || complain "patches_clocks is faster than an honest one"
expect 0 "4 cases" fuzz --plugin libexample_c.so --count 4 --seed 1
expect 0 "bound" explain --plugin libexample_c.so "$line"
expect 0 "there is no failure to shrink" shrink --plugin libexample_c.so "$line"
expect 1 "attest check --plugin libfaulty_plugin.so --backend missing_scale 'seq=1x2 dim=2" shrink --plugin libfaulty_plugin.so --backend missing_scale "heads=2 seq=9 dim=8"
expect 0 "example_c  plain C11 loops on CPU, 1 thread" list backends --plugin libexample_c.so
expect 0 "accumulation_f32     f64" list conventions --plugin libexample_c.so
expect 0 "exp_ulps, f64" list arithmetic --plugin libexample_c.so
"$attest" check --plugin "$folder/libexample_c.so" --json absolute.jsonl "$line" >/dev/null
head -n 1 absolute.jsonl | grep -qF "$folder" && complain "the file's header names a folder of this machine"

# Going on from a run of another library is refused, whatever it is called.
cp "$folder/libexample_c.so" libmine.so
expect 0 "1 passed" check --plugin libmine.so --json resumed.jsonl "$line"
expect 0 "1 passed" check --plugin libmine.so --json resumed.jsonl --resume "$line"
printf 'x' >>libmine.so
one_line "it was run with backend.example_c plain C11 loops" check --plugin libmine.so --json resumed.jsonl --resume "$line"

# The examples: all of smoke or a sentence, and of the matrix no less than the table of backends/plugin/README.md says.
export ATTEST_LISTS=$work/lists
for example in example_c example_cpp example_again; do
  library=lib$example.so
  [ "$example" != example_again ] || library=libfaulty_plugin.so # the backend of the tree, outside
  [ -f "$library" ] || continue
  check() { "$attest" check --plugin "$library" --backend "$example" --no-shrink --write-refusals lists --json "$example.jsonl" "$@" >output 2>&1 || complain "$example: $(tail -n 4 output)"; }
  check --suite smoke
  check --suite matrix --once
  count() { grep -c "\"status\":\"$1\"" "$example.jsonl"; }
  all=$(grep -c '"kind":"verdict"' "$example.jsonl") refused=$(count refused) passed=$(($(count pass) + $(count weak)))
  taken=$(((all - refused) * 100 / all)) right=$((passed * 100 / all))
  echo "$example: takes $((all - refused)) of $all cases of the matrix ($taken %), $passed pass ($right %), $(count inconclusive) can't be judged"
  grep '"status":"refused"' "$example.jsonl" | grep -o '"reason":"[^"]*"' | sort | uniq -c | sort -rn | head -n 6
  read -r least passes < <(sed -nE "s/^\\| \`$example\` \\|.*\\| ([0-9]+) % \\| ([0-9]+) % \\|$/\1 \2/p" "$root/backends/plugin/README.md") ||
    complain "backends/plugin/README.md has no row for $example"
  [ "$taken" -ge "${least:-100}" ] && [ "$right" -ge "${passes:-100}" ] || complain "$example: backends/plugin/README.md says $least % and $passes %"
done
grep '"status":"refused"' example_c.jsonl | grep -qvE '"case":"[^"]*(op=|pass=|out=[a-z_,]*(max|sum))' && complain "example_c refuses what it can do"
grep -q '"status":"refused"' example_again.jsonl && complain "the tree's example refuses something from outside"

# Bugs that shipped, from outside: each class of tests/BUG_CLASSES.md whose case a suite holds is caught where its mistake is made.
classes=0
mistakes=$(grep -E '^\| [0-9]+ \|' "$root/tests/BUG_CLASSES.md" | awk -F '|' '$6 ~ /`/ && $5 ~ /=/ { print $6 }' | grep -oE '`[a-z0-9_]+`' | tr -d '`' | sort -u | paste -sd,)
"$attest" check --plugin libfaulty_plugin.so --backend "correct,example_again,$mistakes" --suite-file "$root/tests/cases/bugs.cases" --no-shrink --json bugs.jsonl >output 2>&1
for right in correct example_again; do
  grep "\"backend\":\"$right\"" bugs.jsonl | grep -qE '"status":"(fail|crashed|timeout|suspect)"' && complain "$right is accused"
done
while IFS='|' read -r _ number _ _ shown wrong _; do
  caught=0
  for mistake in $(grep -oE '`[a-z0-9_]+`' <<<"$wrong" | tr -d '`'); do
    grep "\"backend\":\"$mistake\"" bugs.jsonl | grep '"status":"fail"' >failed || continue
    while read -r name; do
      grep -qF "\"case\":\"${name//\`/}\"" failed && caught=1
    done < <(sed 's/<br>/\n/g' <<<"$shown" | grep -oE '`[^`]*=[^`]*`')
  done
  classes=$((classes + caught))
done < <(grep -E '^\| [0-9]+ \|' "$root/tests/BUG_CLASSES.md")
echo "$classes classes of bugs caught in a plug-in"
[ "$classes" -ge 20 ] || complain "only $classes classes of bugs are caught"
# Every printed command can be typed as it stands: it names the library, repeats the options of the run, and fails again.
attest() { "$attest" "$@"; }
mine=(--plugin ./libfaulty_plugin.so --backend missing_scale --threads 2 --timeout 33)
{
  attest check 'seq=9 dim=4' 'heads=2 seq=5 dim=8' "${mine[@]}" --junit printed.xml --summary printed.md --json printed.jsonl --annotations github
  attest fuzz "${mine[@]}" --count 20
  attest shrink 'batch=2 seq=9 dim=8' "${mine[@]}"
} >printed 2>&1
attest report printed.jsonl --out printed.html >output 2>&1
for place in printed printed.xml printed.md printed.html; do
  python3 -c 'import html, sys; print(html.unescape(sys.stdin.read()))' < <(sed '/<script/,/<\/script>/d' "$place") |
    grep -oE "attest check --plugin [^<>]* --backend missing_scale '[^']*'" | sort -u >commands
  [ -s commands ] || complain "$place prints no command"
  while read -r command; do
    [[ $command == *"--plugin ./libfaulty_plugin.so --threads 2 --timeout 33 "* ]] || complain "$place loses options: $command"
    status=0
    bash -c "$(declare -f attest); attest=$attest; $command" >output 2>&1 </dev/null || status=$?
    [ "$status" = 1 ] || complain "$place: exit code $status: $command: $(tail -n 2 output)"
  done <commands
done

[ "$failures" = 0 ] && echo "plugins: all as expected"
exit $((failures > 0))
