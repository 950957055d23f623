#!/usr/bin/env bash
# commands.sh ATTEST: every command in every document runs.
#
# A command is a line of a block of `sh`. Those of one document run in order, in one shell, in a scratch folder that looks
# like the project's: what they write is gone afterwards. "# exit code N" behind a command says that it doesn't end with 0.
# run_elsewhere.txt lists the few that another test runs. Lines of a block of `cases` are cases that pass or are refused by
# a backend; those of a block of `refused` are no cases, with a piece of the complaint behind them. Options named in the
# text are options.
set -uo pipefail
source "$(dirname "$0")/documents.sh"
attest_path=$(realpath "$1")
attest() { "$attest_path" "$@"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
complain() { echo "$*" >&2; failures=$((failures + 1)); }

# The list: a command, or a document's section for all of its commands, and the file that runs it.
declare -A elsewhere met
while IFS='|' read -r what file; do
  case $what in "" | "#"*) continue ;; esac
  what=$(sed 's/ *$//' <<<"$what")
  file=${file// /}
  elsewhere[$what]=$file
  if [ ! -e "$root/$file" ]; then
    complain "run_elsewhere.txt: $file is not there"
  elif [[ $what == *.md#* ]]; then # the test takes the commands from the document
    grep -qF -- "${what%%#*}" "$root/$file" && grep -qF -- "${what#*#}" "$root/$file" ||
      complain "run_elsewhere.txt: $file does not take its commands from $what"
  else
    grep -qF -- "${what#./}" "$root/$file" || complain "run_elsewhere.txt: $file does not run: $what"
  fi
done <"$docs/run_elsewhere.txt"

run=0 others=0
for document in $(documents); do
  : >"$work/commands"
  case $document in harness/how-to/*) continue ;; esac  # how_to.sh runs them, from an installation
  while IFS=$'\t' read -r line section command; do
    bare=$(sed 's/  *#.*//' <<<"$command")
    for listed in "$bare" "$document#$section"; do
      [ -z "${elsewhere[$listed]:-}" ] || { met[$listed]=1 others=$((others + 1)); continue 2; }
    done
    printf '%s:%s\t%s\n' "$document" "$line" "$command" >>"$work/commands"
    run=$((run + 1))
  done < <(commands "$root/$document")

  # What a clone and a build hold, under other names for what may be written to.
  place=$work/place
  rm -rf "$place"
  mkdir -p "$place/build/bin"
  for entry in "$root"/*; do
    case ${entry##*/} in build*) ;; *) ln -s "$entry" "$place/" ;; esac
  done
  ln -s "$attest_path" "$place/build/bin/attest"
  ln -s "$(dirname "$(dirname "$attest_path")")/tests" "$place/build/tests"
  ln -s build "$place/build-test"
  (cd "$place" && run_commands "$work/output" <"$work/commands")
  failures=$((failures + $?))

  markdown blocks "$root/$document" | awk -F '\t' '$2 == "cases" { print substr($0, length($1 $2 $3) + 4) }' >"$work/own.cases"
  if [ -s "$work/own.cases" ]; then
    attest check --suite-file "$work/own.cases" >"$work/output" 2>&1 || complain "$document: $(tail -n 3 "$work/output")"
  fi
  while IFS=$'\t' read -r line language _ text; do
    [ "$language" = refused ] || continue
    complaint=$(attest check "$(sed 's/   *.*//' <<<"$text")" 2>&1)
    [ $? = 2 ] && grep -qF -- "$(sed 's/.*   *//' <<<"$text")" <<<"$complaint" ||
      complain "$document:$line: not refused so: $text: $complaint"
  done < <(markdown blocks "$root/$document")

  # Commands within the text are shorter or have placeholders; their options are real.
  while IFS=$'\t' read -r line text; do
    if [[ $text == ./scripts/* ]]; then
      [ -x "$root/${text%% *}" ] || complain "$document:$line: no such script: $text"
    fi
    [[ $text == "attest "[a-z]* ]] || continue
    read -r _ sub _ <<<"$text"
    help=$(attest "$sub" --help 2>&1)
    [ "$sub" != mutants ] || help=$(cat "$root/tests/mutants/main.cpp")
    for option in $(grep -oE -- ' --[a-z][a-z-]*' <<<"$text"); do
      grep -qE -- "$option\b" <<<" $help" || complain "$document:$line: attest $sub has no $option"
    done
  done < <(markdown code "$root/$document")
done

for listed in "${!elsewhere[@]}"; do
  [ -n "${met[$listed]:-}" ] || complain "run_elsewhere.txt: no document has: $listed"
done
echo "commands: $run run here, $others by other tests, $failures complaint(s)"
[ "$failures" = 0 ] && [ "$run" -gt 0 ]
