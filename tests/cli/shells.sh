#!/usr/bin/env bash
# shells.sh ATTEST: the completion scripts in their shells, and the manual page. Each shell completes a command, an option,
# a suite, a backend behind a comma and a key within a case line; every option of --help stands in every script and in the
# manual.
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
for tool in zsh fish groff; do
  command -v "$tool" >/dev/null || complain "$tool is not installed"
done

for shell in bash zsh fish; do attest completion "$shell" >"script.$shell" || complain "no script for $shell"; done
attest manual >attest.1 || complain "no manual page"
bash -n script.bash || complain "bash doesn't read its script"
zsh -n script.zsh || complain "zsh doesn't read its script"
fish -n script.fish || complain "fish doesn't read its script"

# What bash offers for the words, of which the last is being typed.
offered_by_bash() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _attest attest "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
  printf '%s\n' "${COMPREPLY[@]}"
}
. ./script.bash
expect() { # WANTED SHELL WORDS...: one line of the offers is WANTED
  local wanted=$1 shell=$2 offered
  shift 2
  if [ "$shell" = bash ]; then
    offered=$(offered_by_bash "$@")
  else
    offered=$(fish -c 'source script.fish; complete -C "$argv"' -- "$*" 2>&1 | cut -f 1)
  fi
  grep -qxF -- "$wanted" <<<"$offered" || complain "$shell offers no \"$wanted\" for: $*: $(head -c 300 <<<"$offered")"
}
for shell in bash fish; do
  expect check $shell attest ch
  expect --suite-file $shell attest check --suit
  expect smoke $shell attest check --suite sm
  expect eigen $shell attest check --backend ei
  expect eigen,example $shell attest check --backend eigen,exam
  expect never $shell attest check --color n
  expect suites $shell attest list su
  expect zsh $shell attest completion z
  expect seq= $shell attest check se
done
expect a_folder bash attest check --shrunk a_
expect a_folder/ fish attest check --shrunk a_
expect 'seq=4 causal' bash attest check '"seq=4 caus'
expect 'seq=4 causal' fish attest check '"seq=4 caus'
expect smoke bash attest check --suite = sm     # --suite=smoke, as bash cuts it
touch x.jsonl
expect x.jsonl bash attest check --json x.j
[ "$(offered_by_bash attest check --json '')" != "" ] || complain "bash offers no files for --json"
offered_by_bash attest bench --no-such- | grep -q . && complain "bash offers what there isn't"

# A name is a name: no shell runs what stands in it, now or when it is accepted.
mkdir rude
for name in '$(touch ran)' '`touch ran`' 'a;touch ran' plain; do echo 'seq=4 dim=4' >"rude/$name.cases"; done
touch '$(touch ran).safetensors'
export ATTEST_CASES=$work/rude
for shell in bash fish; do expect plain $shell attest check --suite pl; done
for typed in '' '$' '`' a; do
  offered_by_bash attest check --suite "$typed" | grep -F touch && complain "bash offers a command"
  offered_by_bash attest check "$typed" | grep -F touch && complain "bash offers a command as a case"
done
fish -c 'source script.fish; complete -C "attest check --suite "' | grep -F touch && complain "fish offers a command"
[ ! -e ran ] || complain "a name was run"
unset ATTEST_CASES

# As zsh asks: the script says in which state it is, and what it hands over then is looked at.
offered_by_zsh() { # STATE WORD
  zsh -fc 'wanted=$1 words=($2)
    _arguments() { if [[ $1 == -C ]]; then state=$wanted; else print -rl -- "$@"; fi; }
    _describe() { print -rl -- "${(@P)argv[-1]}"; }
    source ./script.zsh' zsh "$@"
}
offered_by_zsh command attest | grep -q "^check:Compare backends" || complain "zsh's commands: $(offered_by_zsh command attest 2>&1)"
offered_by_zsh arguments check | grep -qxF -- '*--suite=[A committed suite by name; may be repeated]:SUITE:_attest_suites' ||
  complain "zsh's options of check: $(offered_by_zsh arguments check 2>&1 | grep -F suite)"

# One description for all: what --help has, they have.
options=0
for command in check bench list trace explain shrink compare fuzz new-backend completion manual; do
  help=$(attest "$command" --help)
  manual=$(sed -n "/^\.SS attest ${command//-/.*}/,/^\.SS/p" attest.1 | sed 's/\\-/-/g')
  for option in $(grep -oE -- '(^| |,)--[a-z][a-z-]*' <<<"$help" | grep -oE -- '--[a-z-]*' | sort -u); do
    options=$((options + 1))
    grep -qE "^  (-[a-z],)?$option([ ,]|$)" <<<"$help" || continue # named in a sentence
    grep -qE -- "(^| |')$option( |'|\$)" script.bash || complain "bash doesn't know $command $option"
    grep -qF -- "*$option" script.zsh || complain "zsh doesn't know $command $option"
    grep -q -- "seen_subcommand_from $command'.* -l ${option#--} " script.fish || complain "fish doesn't know $command $option"
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
