#!/usr/bin/env bash
# shells.sh ATTEST: the completion script in bash, and the manual page. Bash completes a command, an option, a suite, a
# backend behind a comma and a key within a case line; every option of --help stands in the script and in the manual.
set -uo pipefail
attest=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/environment.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin a_folder
ln -s "$attest" bin/attest
export PATH=$work/bin:$PATH HOME=$work XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data
failures=0
complain() { echo "$*" >&2; failures=$((failures + 1)); }
command -v groff >/dev/null || complain "groff is not installed"

attest completion bash >script.bash || complain "no script for bash"
attest manual >attest.1 || complain "no manual page"
bash -n script.bash || complain "bash doesn't read its script"

# What bash offers for the words, of which the last is being typed.
offered_by_bash() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _attest attest "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
  printf '%s\n' "${COMPREPLY[@]}"
}
. ./script.bash
expect() { # WANTED WORDS...: one line of the offers is WANTED
  local wanted=$1 offered
  shift
  offered=$(offered_by_bash "$@")
  grep -qxF -- "$wanted" <<<"$offered" || complain "bash offers no \"$wanted\" for: $*: $(head -c 300 <<<"$offered")"
}
expect check attest ch
expect --suite-file attest check --suit
expect smoke attest check --suite sm
expect eigen attest check --backend ei
expect eigen,example attest check --backend eigen,exam
expect never attest check --color n
expect suites attest list su
expect bash attest completion b
expect seq= attest check se
expect a_folder attest check --shrunk a_
expect 'seq=4 causal' attest check '"seq=4 caus'
expect smoke attest check --suite = sm     # --suite=smoke, as bash cuts it
touch x.jsonl
expect x.jsonl attest check --json x.j
[ "$(offered_by_bash attest check --json '')" != "" ] || complain "bash offers no files for --json"
offered_by_bash attest bench --no-such- | grep -q . && complain "bash offers what there isn't"

# A name is a name: no shell runs what stands in it, now or when it is accepted.
mkdir rude
for name in '$(touch ran)' '`touch ran`' 'a;touch ran' plain; do echo 'seq=4 dim=4' >"rude/$name.cases"; done
touch '$(touch ran).safetensors'
export ATTEST_CASES=$work/rude
expect plain attest check --suite pl
for typed in '' '$' '`' a; do
  offered_by_bash attest check --suite "$typed" | grep -F touch && complain "bash offers a command"
  offered_by_bash attest check "$typed" | grep -F touch && complain "bash offers a command as a case"
done
[ ! -e ran ] || complain "a name was run"
unset ATTEST_CASES

# One description for all: what --help has, they have.
options=0
for command in check bench list trace explain shrink compare fuzz new-backend completion manual; do
  help=$(attest "$command" --help)
  manual=$(sed -n "/^\.SS attest ${command//-/.*}/,/^\.SS/p" attest.1 | sed 's/\\-/-/g')
  for option in $(grep -oE -- '(^| |,)--[a-z][a-z-]*' <<<"$help" | grep -oE -- '--[a-z-]*' | sort -u); do
    options=$((options + 1))
    grep -qE "^  (-[a-z],)?$option([ ,]|$)" <<<"$help" || continue # named in a sentence
    grep -qE -- "(^| |')$option( |'|\$)" script.bash || complain "bash doesn't know $command $option"
    grep -qF -- "$option" <<<"$manual" || complain "the manual doesn't know $command $option"
  done
done
[ "$options" -gt 60 ] || complain "only $options options were found"

warnings=$(groff -man -Tutf8 -ww -z attest.1 2>&1)
[ -z "$warnings" ] || complain "groff warns: $warnings"
groff -man -Tascii -P-c attest.1 | sed 's/.\x08//g' >page
for part in "EXIT STATUS" "NO_COLOR" "attest check --suite smoke --backend eigen" "bounds too wide to prove anything"; do
  grep -qF -- "$part" page || complain "the manual doesn't show: $part"
done
echo "shells: $options options, $failures complaint(s)"
[ "$failures" = 0 ]
