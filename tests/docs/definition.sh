#!/usr/bin/env bash
# definition.sh: the definition of attention at the top of reference/softmax/attention.h is the one in reference/README.md, line by
# line, each formula on one line of its own.
set -euo pipefail
source "$(dirname "$0")/documents.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n '1,/^#pragma once/{/^\/\/ clang-format off$/,/^\/\/ clang-format on$/{//!p}}' "$root/reference/softmax/attention.h" |
  sed 's,^// \{0\,1\},,; s/^ *//; /^$/d' >"$work/header"
block "$root/reference/README.md" definition text | sed 's/^ *//; /^$/d' >"$work/document"
diff "$work/header" "$work/document" || {
  echo "reference/softmax/attention.h and reference/README.md#definition define attention differently" >&2
  exit 1
}
for stage in raw capped biased mask visible sum weights output lse; do
  [ "$(grep -cE "^$stage +[a-zA-Z][^=]* = " "$work/header")" = 1 ] ||
    { echo "reference/softmax/attention.h: no line of its own for \"$stage\"" >&2; exit 1; }
done
echo "definition: $(wc -l <"$work/header") lines, the same in both"
