#!/usr/bin/env bash
# speed_scripts.sh: what the scripts that time make of tables that a program made up for the test prints: speeds that are
# missing, marked or lost.
set -uo pipefail
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/build/bin" "$tmp/replies"
cp -r scripts "$tmp/scripts"
unset ATTEST_BUILD
failed=0

# Answers `bench CASE...` with the file that is named after the first case, and ends with the code in its first line.
cat >"$tmp/build/bin/attest" <<'FAKE'
#!/usr/bin/env bash
here=$(cd "$(dirname "$0")/../.." && pwd)
if [ "$1" = list ]; then
  printf '%s\n' 'quick      a library on CPU, 2 thread(s)' 'slow       another on CPU, 1 thread'
  exit
fi
reply=$here/replies/${2// /_}
tail -n +2 "$reply"
exit "$(head -n 1 "$reply")"
FAKE
chmod +x "$tmp/build/bin/attest"
reply() { cat >"$tmp/replies/$1"; } # CASE, and on standard input the exit code and the table
table() { # CASE MS_OF_QUICK MARK [LINE INSTEAD OF SLOW'S]
  echo "a processor, 2 thread(s)"
  printf '\n%s\n' "$1"
  echo '  backend        run ms   spread   total ms GFLOP/s   of FMA   GB/s error/bound   ratio to the fastest (95% interval)'
  printf '  quick      %10.3f       5%%      0.250    35.3     0.08    2.2       0.033   1.00x%s\n' "$2" "$3"
  [ -n "${4:-}" ] || echo '  slow            8.000       5%      0.250    35.3     0.08    2.2       0.033   4.00x (3.90 to 4.10)'
  echo '  steps, ms     prepare  first run    upload      run (95% interval)  download  threads spinning memory MB   total'
  echo '  quick           0.025      0.054     0.000          0.199 to 0.201     0.000        -       0%       0.1   1.00x'
  [ -n "${4:-}" ] || echo '  slow            0.025      0.054     0.000          0.199 to 0.201     0.000        -       0%       0.1   1.00x'
  [ -z "${4:-}" ] || echo "  slow       $4"
  echo '  caches: warm, 2 set(s) of 0.0 MB in turn'
}

# expect CODE TEXT COMMAND...: the exit code, and a line that stands in the output; TEXT "! x" must not stand there.
expect() {
  local code=$1 text=$2 output status=0
  shift 2
  output=$("$@" 2>&1) || status=$?
  [ "$status" = "$code" ] || { failed=1; echo "exit code $status instead of $code: $*"; echo "$output"; }
  if [[ $text == "! "* ]]; then
    ! grep -qF -- "${text#! }" <<<"$output" || { failed=1; echo "must not stand there: ${text#! }   ($*)"; echo "$output"; }
  else
    grep -qF -- "$text" <<<"$output" || { failed=1; echo "missing: $text   ($*)"; echo "$output"; }
  fi
}

ratio=$tmp/scripts/cost_ratio.sh
{ echo 0; table "seq=8" 2 ""; } | reply seq=8
{ echo 0; table "seq=9" 3 ""; } | reply seq=9
{ echo 0; table "seq=10" 3 "?"; } | reply seq=10
{ echo 1; table "seq=11" 3 "" "no speed: failed: wrong"; } | reply seq=11
{ echo 0; table "seq=12" 3 "" "no speed: refused: no such sizes"; } | reply seq=12
echo 2 | reply seq=13
expect 0 "1.500 (quartiles 1.500 to 1.500, 3 rounds)" "$ratio" quick 3 seq=8 seq=9
expect 0 "1.500? (quartiles 1.500 to 1.500, 3 rounds, 3 of them disturbed)" "$ratio" quick 3 seq=8 seq=10
expect 1 "slow has no speed on seq=11: failed: wrong" "$ratio" slow 3 seq=8 seq=11
expect 1 "slow has no speed on seq=12: refused: no such sizes" "$ratio" slow 3 seq=12 seq=8
expect 1 "nobody has no speed on seq=8" "$ratio" nobody 3 seq=8 seq=9
expect 2 "! nan" "$ratio" quick 3 seq=13 seq=8
expect 2 "! nan" "$ratio" quick 0 seq=8 seq=9

scaling=$tmp/scripts/scaling.sh
expect 0 "quick        2 thread(s)      2.000 ms  speed-up   1.00  efficiency   50%" "$scaling" quick,slow seq=8 1 2
expect 0 "quick        2 thread(s)      3.000 ms? speed-up   1.00? efficiency   50%?" "$scaling" quick,slow seq=10 1 2
expect 0 "slow         2 thread(s)  no speed: refused: no such sizes" "$scaling" quick,slow seq=12 1 2
expect 1 "slow         1 thread(s)  no speed: failed: wrong" "$scaling" quick,slow seq=11 1 2

honest=$tmp/scripts/honest_speeds.sh
three() { # three CODE [LINE INSTEAD OF SLOW'S]: the tables of one run of honest_speeds.sh
  { echo "$1"; table "heads=2 seq=128 dim=64" 2 "" "${2:-}"; table "seq=64 dim=16 causal" 2 "?"; table "heads=4 seq=1x1024 dim=64" 2 ""; } |
    reply heads=2_seq=128_dim=64
}
three 0
expect 0 "2 runs, the last 1 beside 1 spinning processes: 0 of 12 speeds lost" "$honest" 2 1
three 1 "no speed: more threads than given"
expect 1 "2 of 12 speeds lost" "$honest" 2 1
three 134
expect 1 "run 1 ended with exit code 134" "$honest" 2 1
{ echo 1; table "heads=2 seq=128 dim=64" 2 ""; } | reply heads=2_seq=128_dim=64  # ends early
expect 1 "8 of 12 speeds lost" "$honest" 2 1

# The program of another build folder.
mv "$tmp/build" "$tmp/other"
three 0
expect 0 "1.500 (quart" env ATTEST_BUILD="$tmp/other" "$ratio" quick 1 seq=8 seq=9
expect 0 "quick        1 thread(s)" env ATTEST_BUILD="$tmp/other" "$scaling" quick seq=8 1
expect 0 "0 of 12 speeds lost" env ATTEST_BUILD="$tmp/other" "$honest" 2 1
[ "$failed" = 0 ] && echo "the scripts tell every speed that is missing, marked or lost"
exit "$failed"
