#!/usr/bin/env bash
# manual.sh ATTEST: the manual page has every option of --help, and is roff without complaint.
set -uo pipefail
attest=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/environment.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
attest() { "$attest" "$@"; }
failures=0
complain() { echo "$*" >&2; failures=$((failures + 1)); }
command -v groff >/dev/null || complain "groff is not installed"
attest manual >attest.1 || complain "no manual page"

options=0
for command in check bench list trace explain shrink compare fuzz new-backend manual; do
  help=$(attest "$command" --help)
  manual=$(sed -n "/^\.SS attest ${command//-/.*}/,/^\.SS/p" attest.1 | sed 's/\\-/-/g')
  for option in $(grep -oE -- '(^| |,)--[a-z][a-z-]*' <<<"$help" | grep -oE -- '--[a-z-]*' | sort -u); do
    options=$((options + 1))
    grep -qE "^  (-[a-z],)?$option([ ,]|$)" <<<"$help" || continue # named in a sentence
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
echo "manual: $options options, $failures complaint(s)"
[ "$failures" = 0 ]
