#!/usr/bin/env bash
# readme_semantics.sh ATTEST README [--write]: the table of semantics in the README is what `attest list semantics` prints.
set -euo pipefail
table=$(mktemp)
trap 'rm -f "$table" "$table.readme"' EXIT
"$1" list semantics >"$table"
if [ "${3:-}" = --write ]; then
  sed -i -e '/^<!-- attest list semantics -->$/,/^<!-- end -->$/{//!d}' -e "/^<!-- attest list semantics -->\$/r $table" "$2"
fi
sed -n '/^<!-- attest list semantics -->$/,/^<!-- end -->$/{//!p}' "$2" >"$table.readme"
diff "$table.readme" "$table" || { echo "the README's table is out of date: run $0 $1 $2 --write" >&2; exit 1; }
