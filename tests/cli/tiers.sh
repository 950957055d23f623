#!/usr/bin/env bash
# tiers.sh: scripts/test.sh puts each test of ctest in a tier, its parts hold every test of --all once and take about
# equally long, what they build counted, and a part that is not there is refused.
set -uo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tiers=${ATTEST_BUILD:-build}-test/tests/tiers.txt
failures=0
complain() { echo "tiers: $*" >&2; failures=$((failures + 1)); }

./scripts/test.sh --list >"$work/list" || complain "--list: exit code $?"
./scripts/test.sh --all --list | sort >"$work/all"
for part in 1 2 3 4 5 6; do
  ./scripts/test.sh --part $part/6 --list >"$work/part" || complain "--part $part/6: exit code $?"
  cat "$work/part" >>"$work/parts"
  awk 'NR == FNR { wanted[$1] = 1; next }
    $1 == "build" { build[$3] = $2 }
    $1 != "build" && $1 != "share" && $3 in wanted { sum += $2; for (n = 4; n <= NF; ++n) needed[$n] = 1 }
    END { for (target in needed) sum += build[target]; print sum }' "$work/part" "$tiers" >>"$work/costs"
done
sort "$work/parts" | diff - "$work/all" >&2 || complain "six parts are not all tests, each once"
sort -n "$work/costs" | awk '{ cost[NR] = $1 } END { exit !(NR == 6 && cost[1] > 0 && cost[6] <= 1.5 * cost[1]) }' ||
  complain "parts take $(tr '\n' ' ' <"$work/costs")s"
# Of a share its whole form is in --all.
[ "$(grep -c '^quick, a share' "$work/list")" = 2 ] || complain "not two shares: $(grep '^quick, a share' "$work/list")"
# What ctest has, but for the steps that build.
./scripts/test.sh -L unit -N >"$work/unit"
grep -q 'Test .*: unit[.]0' "$work/unit" || complain "-L unit does not list unit tests"
./scripts/test.sh -N | sed -n 's/^ *Test *#[0-9]*: *//p' | grep -v '^build[.]' | sort >"$work/ctest"
awk '{ print $NF }' "$work/list" | sort | diff - "$work/ctest" >&2 || complain "a test is in no tier"
for wrong in 7/6 0/6 1 6/ a/b; do
  ./scripts/test.sh --part "$wrong" >"$work/out" 2>&1 </dev/null
  [ $? = 2 ] && [ "$(wc -l <"$work/out")" = 1 ] || complain "--part $wrong is not refused in one line"
done
[ "$failures" = 0 ] && echo "tiers: $(wc -l <"$work/list") tests"
exit $((failures > 0))
