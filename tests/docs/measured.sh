#!/usr/bin/env bash
# measured.sh: a table of every baseline in results/: machine, roof, date, commit.
set -euo pipefail
cd "$(dirname "$0")/../../results"
field() { sed -n "s/^ *\"$2\": \"\([^\"]*\)\".*/\1/p" "$1.json" | head -n 1; }
echo "| baseline | processor, build | f32 FMA, reading | measured | commit |"
echo "|---|---|---|---|---|"
for file in *.json; do
  name=${file%.json}
  commit=$(field "$name" commit)
  echo "| \`$name\` | $(field "$name" cpu), $(field "$name" threads) threads; $(field "$name" build) |" \
    "$(field "$name" roof_fma_gflops_f32) GFLOP/s, $(field "$name" roof_read_gbps) GB/s |" \
    "$(field "$name" date | cut -c 1-10) | \`${commit:0:7}\` |"
done
