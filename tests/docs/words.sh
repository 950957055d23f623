#!/usr/bin/env bash
# words.sh: documents, headers, sources and Python are written in the field's words. Words that attest once used for
# itself stay away, the glossary of harness/README.md has at most 30 entries, and each entry occurs elsewhere.
set -euo pipefail
source "$(dirname "$0")/documents.sh"
cd "$root"
# Each is a word by itself or a part of an identifier, in any case but for Tone and kTold.
old='rehearsals?|companions?|spoil(s|ed|t|ing)?|last[ _-]words?|crowd(s|ed|ing)?|untold|restless|blam(e|es|ed|ing)'
old+='|settle[sd]?|yardsticks?|parcels?|surroundings?|dearness|telling|way_on|left_at_work|mistrusted|painted|guessing'
old+='|rooms|(a|the|this|each|its) room(?! for)|memory that nobody wrote'
# FILE: TEXT. The text may stand in the files that the pattern names.
allowed='CHANGELOG\.md:.*mistrusted
backends/peers/peer_results\.py:.*mistrusted
harness/report/verdict_json\.cpp:.*mistrusted
tests/unit/verdict_json_test\.cpp:.*mistrusted'
files() { find "${@:-.}" \( -name 'build*' -o -name .git \) -prune -o \( -name '*.md' -o -name '*.h' -o -name '*.cpp' -o -name '*.py' \) -type f -print; }
found=$({ files | xargs grep -nPi "(?<![a-z])($old)(?![a-z])"; files | xargs grep -nP '\bkTold|\bTone\b'; } |
  sed 's,^\./,,; s/^\([^:]*\):\([0-9]*\):/\1:\2: /' | grep -vE "^(${allowed//$'\n'/|})" || true)
[ -z "$found" ] || { echo "$found" >&2; echo "words.sh: say it in the words of the field" >&2; exit 1; }

terms=$(sed -n '/^## Glossary$/,/^## Modules$/{s/^| \([^|]*[^ |]\) *| .*/\1/p}' harness/README.md | grep -vxE 'term|-+')
text=$(files | grep -E '\.(md|h)$' | xargs cat)
entries=0 unused=
while IFS= read -r term; do
  entries=$((entries + 1))
  elsewhere=$(grep -iE -- "(^|[^a-z])$term" <<<"$text" | grep -vcF "| $term |") || true
  [ "$elsewhere" -gt 0 ] || unused+="$term; "
done <<<"$terms"
[ -z "$unused" ] || { echo "words.sh: the glossary explains what nothing uses: $unused" >&2; exit 1; }
[ "$entries" -le 30 ] || { echo "words.sh: the glossary has $entries entries, more than 30" >&2; exit 1; }
echo "words: no old word; $entries entries in the glossary, all used"
