#!/usr/bin/env bash
# hosts.sh ATTEST: one run on several hosts. Three network namespaces with names and addresses of their own stand for them,
# joined by a bridge, and mpirun reaches them as it reaches others by ssh. The run on them is the run by itself; attention
# spans two of them; a host that falls off the network ends the job with a word on how to go on. Ends with 77 (skipped)
# where namespaces can't be made. About 20 seconds.
set -euo pipefail
attest=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../cli/environment.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
skip() { echo "hosts: skipped: $*"; exit 77; }
command -v ip >/dev/null || skip "ip is not installed (iproute2)"
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
net=10.$((100 + $$ % 100)).$(($$ / 100 % 250)) name=attest$$ bridge=ab$$
work=$(mktemp -d)
nodes=()
finish() {
  for node in "${nodes[@]}"; do
    ip netns pids "$node" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    ip netns del "$node" 2>/dev/null || true
  done
  ip link del "$bridge" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
cd "$work"
failures=0
complain() { echo "hosts: $*" >&2; failures=$((failures + 1)); }

ip link add "$bridge" type bridge 2>why || skip "no bridge can be made: $(cat why)"
ip link set "$bridge" up
for n in 1 2 3; do
  node=$name-$n
  ip netns add "$node" 2>why || skip "no namespace can be made: $(cat why)"
  nodes+=("$node")
  ip link add "$bridge-$n" type veth peer name eth0 netns "$node"
  ip link set "$bridge-$n" master "$bridge" up
  ip -n "$node" addr add "$net.$n/24" dev eth0
  ip -n "$node" link set eth0 up
  ip -n "$node" link set lo up
done
# What ssh is elsewhere: agent HOST COMMAND... Where a file HOST.cases lies, the host has it for lines.cases.
cat >agent <<'AGENT'
#!/bin/sh
host=$1
shift
cd "$(dirname "$0")"
exec ip netns exec "$host" unshare --uts --mount sh -c \
  "hostname $host && { [ ! -e $host.cases ] || mount --bind $host.cases lines.cases; } && $*"
AGENT
chmod +x agent
on_hosts() { # HOST:SLOTS,... OPTIONS OF CHECK...
  local hosts=$1 ranks
  shift
  ranks=$(tr , '\n' <<<"$hosts" | awk -F : '{ n += $2 } END { print n }')
  timeout 100 ./agent "${nodes[0]}" exec mpirun --bind-to none --mca plm_rsh_agent "$work/agent" \
    --mca oob_tcp_if_include "$net.0/24" --mca btl_tcp_if_include "$net.0/24" --host "$hosts" -n "$ranks" -wdir "$work" \
    "$attest" check --threads 1 "$@"
}
strip() { grep '"kind":"verdict"' "$1" | sed 's/"seconds":{[^}]*}//'; }

"$attest" check --suite smoke --backend example,eigen --threads 1 --json alone.jsonl >alone
on_hosts "${nodes[0]}:1,${nodes[1]}:1,${nodes[2]}:2" --suite smoke --backend example,eigen --json three.jsonl >three 2>errors ||
  complain "three hosts: $(tail -n 5 errors)"
[ "$(strip alone.jsonl | wc -l)" = $((2 * $(grep -c "^[^#]" "$here/../cases/smoke.cases"))) ] || complain "by itself: $(tail -n 1 alone)"
diff <(strip alone.jsonl) <(strip three.jsonl) >diff || complain "three hosts: other verdicts: $(head -n 4 diff)"

# What a host has otherwise is told with its name, and nothing is run.
printf 'seq=2 dim=2\nseq=3 dim=2\n' >lines.cases
echo "seq=4 dim=2" >"${nodes[1]}.cases"
status=0
on_hosts "${nodes[0]}:1,${nodes[1]}:1" --suite-file lines.cases --backend example --json none.jsonl >console 2>errors || status=$?
[ "$status" = 2 ] && [ "$(grep -c '^attest: ' errors)" = 1 ] && grep -q "rank 1 on ${nodes[1]}.* other cases" errors && [ ! -e none.jsonl ] ||
  complain "other cases on a host: exit code $status: $(cat errors)"
rm "${nodes[1]}.cases"

# A case on two hosts.
if "$attest" list backends | grep -q '^ring '; then
  on_hosts "${nodes[1]}:1,${nodes[2]}:1" --ranks-per-case 2 --backend ring,head_parallel \
    "heads=4/2 seq=65x129 dim=40 causal align=bottom-right" "heads=2 seq=1x300 dim=16 sinks" >console 2>errors ||
    complain "a case on two hosts: $(tail -n 5 errors)"
  grep -q "^4 passed, 0 failed" console || complain "a case on two hosts: $(tail -n 1 console)"
fi

# A host is gone, with all that ran there.
"$attest" list cases --suite matrix | sed -n 1,400p >many.cases
on_hosts "${nodes[0]}:1,${nodes[1]}:1" --suite-file many.cases --backend example --json gone.jsonl >console 2>errors &
job=$!
until [ "$(cat gone.jsonl.part* 2>/dev/null | grep -c '"kind":"verdict"')" -gt 20 ] || ! kill -0 "$job" 2>/dev/null; do sleep 0.02; done
ip netns pids "${nodes[1]}" | xargs -r kill -9 2>/dev/null || true
status=0
wait "$job" || status=$?
[ "$status" != 0 ] && [ "$status" != 1 ] || complain "a host that is gone: exit code $status"
grep -q -- "--resume goes on" errors || complain "a host that is gone: no word of how to go on: $(tail -n 5 errors)"
on_hosts "${nodes[0]}:1,${nodes[2]}:1" --suite-file many.cases --backend example --json gone.jsonl --resume >console 2>errors || true
grep -q "of them taken over" console || complain "a host that is gone: nothing was taken over: $(tail -n 3 console errors)"
[ "$(strip gone.jsonl | wc -l)" = 400 ] || complain "a host that is gone: going on ended with $(strip gone.jsonl | wc -l) of 400"

[ "$failures" = 0 ] && echo "hosts: three hosts as one run"
exit "$((failures > 0))"
