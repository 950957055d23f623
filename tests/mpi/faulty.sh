#!/usr/bin/env bash
# faulty.sh MPIEXEC FAULTY: each mistake of faulty/faults.cmake is caught by the line that faulty/killed.txt names,
# and by no other cause than the mistake: the same lines pass in the same program without one.
set -euo pipefail
mpiexec=$1 faulty=$2 here=$(cd "$(dirname "$0")" && pwd)
cases=$here/../cases status=0 count=0 lines=()
complain() { echo "$*" >&2; status=1; }
check() { # FAULT BACKEND LINE...
  local fault=$1 backend=$2
  shift 2
  ATTEST_FAULT=$fault "$mpiexec" --oversubscribe -n 3 "$faulty" check "$@" --ranks-per-case 3 --backend "$backend" --threads 1 2>&1 </dev/null
}
trim() { local text=$1; text=${text#"${text%%[! ]*}"}; echo "${text%"${text##*[! ]}"}"; }

faults=$(grep -o '^attest_fault([0-9]*' "$here/faulty/faults.cmake" | tr -dc '0-9\n' | sort -u)
named=$(grep -o '^[0-9]*' "$here/faulty/killed.txt" | sort)
[ "$faults" = "$named" ] || complain "faults.cmake has $(echo $faults), killed.txt has $(echo $named)"
while IFS='|' read -r number suite backend line; do
  case $number in "" | "#"*) continue ;; esac
  number=$(trim "$number") suite=$(trim "$suite") backend=$(trim "$backend") line=$(trim "$line")
  count=$((count + 1)) lines+=("$line")
  sed 's/ *#.*//' "$cases/$suite.cases" | grep -xF -- "$line" >/dev/null || complain "$number: $suite has no line '$line'"
  said=$(check "$number" "$backend" "$line") && complain "$number: passes '$line'"
  grep -q "0 pass, 1 fail" <<<"$said" || complain "$number: not a failed verdict, but: $said"
done <"$here/faulty/killed.txt"
[ "$count" -gt 0 ] || complain "killed.txt is empty"
# What fails on a rank above 0 is told with its number, by rank 0 and in a verdict, and the next case goes on.
for reason in "101 rank 1: crashed: Segmentation fault" "102 rank 1: told to throw"; do
  said=$(check "${reason%% *}" ring,key_parallel "seq=4 dim=4" "heads=4 seq=65x129 dim=40") && complain "$reason: passes"
  grep -qF "${reason#* }" <<<"$said" || complain "not told: ${reason#* }, but: $said"
  grep -q "0 pass, 4 fail" <<<"$said" || complain "${reason#* }: cases are left: $said"
done
said=$(check 0 ring,ring_zigzag,head_parallel,key_parallel "${lines[@]}") || complain "without a mistake: $said"
[ "$status" -ne 0 ] || echo "$count mistakes, each caught"
exit $status
