#!/usr/bin/env bash
# slurm.sh ATTEST: the commands of harness/SHARDS.md, section slurm, on a Slurm of one node that this script starts and ends: the
# parts of an array, merged, are the run of the whole. Ends with 77 (skipped) where it can't be started. About 20 seconds.
set -euo pipefail
attest=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/environment.sh"
. "$here/../docs/documents.sh"
skip() { echo "slurm: skipped: $*"; exit 77; }
for program in munged slurmctld slurmd sbatch; do
  command -v "$program" >/dev/null || skip "$program is not installed (slurm-wlm)"
done
[ "$(id -u)" = 0 ] || skip "its daemons need root"
work=$(mktemp -d)
finish() {
  for name in slurmd slurmctld munged; do
    [ ! -s "$work/$name.pid" ] || kill "$(cat "$work/$name.pid")" 2>/dev/null || true
  done
  for _ in $(seq 50); do
    [ -e "$work/slurmd.pid" ] || [ -e "$work/slurmctld.pid" ] || break
    sleep 0.1
  done
  rm -rf "$work" 2>/dev/null || { sleep 1; rm -rf "$work"; }
}
trap finish EXIT
chmod 755 "$work"
mkdir "$work/munge" "$work/state" "$work/spool" "$work/bin" "$work/run"
chmod 700 "$work/munge"
head -c 1024 /dev/urandom >"$work/munge/key"
chmod 400 "$work/munge/key"
munged --force --socket="$work/munge/socket" --key-file="$work/munge/key" --pid-file="$work/munged.pid" \
  --log-file="$work/munge/log" --seed-file="$work/munge/seed" 2>"$work/why" || skip "munged does not start: $(tail -n 1 "$work/why")"
port=$((20000 + $$ % 20000))
host=$(hostname -s)
cat >"$work/slurm.conf" <<CONF
ClusterName=attest
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SchedulerParameters=sched_interval=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP
CONF
export SLURM_CONF=$work/slurm.conf
slurmctld -f "$SLURM_CONF" || skip "slurmctld does not start: $(tail -n 1 "$work/slurmctld.log")"
slurmd -f "$SLURM_CONF" || skip "slurmd does not start: $(tail -n 1 "$work/slurmd.log")"
for _ in $(seq 100); do
  sinfo -h -o %T 2>/dev/null | grep -q idle && break
  sleep 0.2
done
sinfo -h -o %T | grep -q idle || skip "the node does not come up: $(tail -n 1 "$work/slurmd.log")"

# From here on everything is attest's.
ln -s "$attest" "$work/bin/attest"
export PATH=$work/bin:$PATH
cd "$work/run"
ln -s "$root/scripts" scripts
commands "$root/harness/SHARDS.md" | awk -F '\t' '$2 == "slurm" { print "SHARDS.md:" $1 "\t" $3 }' >../commands
[ "$(wc -l <../commands)" = 2 ] || { echo "slurm: the document has other commands" >&2; exit 1; }
run_commands ../log <../commands || { tail -n 5 slurm-*.out ../slurmctld.log; exit 1; }
strip() { grep '"kind":"verdict"' "$1" | sed 's/"seconds":{[^}]*}//'; }
# With as many threads as a task has: lines that repeat a verdict name them.
attest check --suite smoke --backend example,eigen --threads 1 --json unsplit.jsonl >/dev/null
[ "$(strip unsplit.jsonl | wc -l)" = $((2 * $(grep -c "^[^#]" "$root/tests/cases/smoke.cases"))) ] || { echo "slurm: nothing to compare" >&2; exit 1; }
diff <(strip unsplit.jsonl) <(strip whole.jsonl) || { echo "slurm: the parts are not the whole" >&2; exit 1; }
[ "$(grep -o '"shard":"./3"' whole.jsonl | sort -u | wc -l)" = 3 ] || { echo "slurm: no three shards" >&2; exit 1; }

# One task again, alone; and the script where there is no array.
rm shard-2.jsonl
SHARDS=3 sbatch --wait --array=2 scripts/shards.sbatch --suite smoke --backend example,eigen >/dev/null
attest merge shard-*.jsonl --quiet >/dev/null
code=0
scripts/shards.sbatch --suite smoke 2>../log || code=$?
[ "$code" = 2 ] && grep -q "start it as an array" ../log || { echo "slurm: without an array: $code" >&2; exit 1; }

# Two ranks of one job, where attest and Slurm have MPI.
if ldd "$attest" | grep -q libmpi && srun --mpi=list 2>&1 | grep -qw pmix && [ "$(nproc)" -ge 2 ]; then
  srun --mpi=pmix --ntasks=2 attest check --suite smoke --backend example,eigen --threads 1 --json ranks.jsonl >ranks 2>../log ||
    { echo "slurm: srun: $(cat ../log)" >&2; exit 1; }
  diff <(strip unsplit.jsonl) <(strip ranks.jsonl) || { echo "slurm: ranks are not the whole" >&2; exit 1; }
  [ "$(grep -c ' passed, ' ranks)" = 1 ] || { echo "slurm: not one report: $(grep ' passed, ' ranks)" >&2; exit 1; }
  echo "slurm: two ranks are the whole run"
fi
echo "slurm: an array of three shards is the whole run"
