#!/usr/bin/env bash
# counts.sh: what is meant to stay small does. The smallest plan that backends/README.md shows has at most 20 lines, and
# harness/ at most 19 folders of sources.
set -euo pipefail
source "$(dirname "$0")/documents.sh"
lines=$(block "$root/backends/README.md" the-smallest-plan cpp | sed -n '/^class MyPlan/,/^};/p' | grep -c .)
[ "$lines" -le 20 ] || { echo "backends/README.md: the smallest plan has $lines lines" >&2; exit 1; }
folders=$(git -C "$root" ls-files 'harness/*.h' 'harness/*.cpp' | cut -d / -f 2 -s | grep -v '\.' | sort -u | wc -l)
[ "$folders" -le 19 ] || { echo "harness/ has $folders folders" >&2; exit 1; }
echo "counts: the smallest plan has $lines lines, harness/ $folders folders"
