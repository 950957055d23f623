#!/usr/bin/env bash
# names.sh ATTEST: every key, flag, fill and name that the case language has stands in harness/CASES.md, and every status of a verdict
# and cause in harness/VERDICTS.md; why a backend has no speed, in results/SCHEMA.md.
set -euo pipefail
source "$(dirname "$0")/documents.sh"
cd "$root"
missing=0 names=0
expect() { # DOCUMENT NAME
  names=$((names + 1))
  markdown code "$1" | cut -f 2 | grep -qE -- "(^|[^a-z_.])${2//./\\.}([^a-z_.]|\$)" || { echo "$1 does not say what $2 is" >&2; missing=1; }
}
# Keys as the program lists them; fills and names of values as their tables hold them.
names_of() { sed -n "/kNames<$1> *=/{:more; /;/!{N; b more}; p}" "$2" | grep -oE '"[a-z_0-9-]+"' | tr -d '"'; }
for name in $("$1" list options | sed 's/[= [].*//') \
  $(sed -n '/^const std::vector<FillName>& /,/^}/p' reference/options/option_text.cpp | grep -oE '"[a-z]+"' | tr -d '"' | sort -u) \
  $(names_of Op reference/call/call.h) $(names_of Layout reference/call/call.h) $(names_of Output reference/call/call.h) \
  $(names_of Align reference/call/call.h); do
  # Said once for all tensors.
  case $name in *.layout | *.fill) continue ;; *.strides | *.offset | *.dtype) name=TENSOR.${name#*.} ;; esac
  expect harness/CASES.md "$name"
done
for name in $(names_of Status harness/verdict/verdict.h); do expect harness/VERDICTS.md "$name"; done
for name in $(names_of NoSpeed harness/speed/trust/no_speed.h); do expect results/SCHEMA.md "$name"; done
# Causes are several words, each the first cell of a row.
while IFS= read -r name; do
  [ "$name" = other ] && continue # what this version doesn't know
  names=$((names + 1))
  grep -qF -- "| \`$name\` |" harness/VERDICTS.md || { echo "harness/VERDICTS.md does not say what \"$name\" is" >&2; missing=1; }
done < <(sed -n '/kNames<Cause> *=/,/;/p' harness/comparison/cause.h | grep -oE '"[A-Za-z][^"]*"' | tr -d '"')
[ "$names" -gt 60 ] || { echo "names.sh found $names names only" >&2; exit 1; }
echo "names: $names, all described"
exit $missing
