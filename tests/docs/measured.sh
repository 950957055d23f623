#!/usr/bin/env bash
# measured.sh baselines          every baseline in results/: machine, roof, date, commit
# measured.sh table NAME         one of them: milliseconds and fraction of the roof by case and backend
# measured.sh case NAME LINE     the table of one case, as the terminal showed it
set -euo pipefail
cd "$(dirname "$0")/../../results"
field() { sed -n "s/^ *\"$2\": \"\([^\"]*\)\".*/\1/p" "$1.json" | head -n 1; }
if [ "$1" = baselines ]; then
  echo "| baseline | processor, build | f32 FMA, reading | measured | commit |"
  echo "|---|---|---|---|---|"
  for file in *.json; do
    name=${file%.json}
    commit=$(field "$name" commit)
    echo "| \`$name\` | $(field "$name" cpu), $(field "$name" threads) threads; $(field "$name" build) |" \
      "$(field "$name" roof_fma_gflops_f32) GFLOP/s, $(field "$name" roof_read_gbps) GB/s |" \
      "$(field "$name" date | cut -c 1-10) | \`${commit:0:7}\` |"
  done
elif [ "$1" = table ]; then
  echo "| case | eigen | xtensor | opencl | clblast | example |"
  echo "|---|---|---|---|---|---|"
  awk '/^[^ ].*=/ && !/thread/ && !/roof/ { line = $0; order[++n] = line }
    /^  [a-z]/ { speeds = $1 == "backend" || (speeds && $1 != "steps,") }
    speeds && $1 != "backend" && /^  [a-z]/ { cell[line, $1] = $2 " ms, " $6 }
    END { for (i = 1; i <= n; ++i) { printf "| `%s` |", order[i]
      split("eigen xtensor opencl clblast example", names)
      for (j = 1; j <= 5; ++j) printf " %s |", (order[i], names[j]) in cell ? cell[order[i], names[j]] : "-"
      print "" } }' "$2.txt"
else
  awk -v wanted="$3" '$0 == wanted { inside = 1 } /^$/ { inside = 0 } inside { sub(/ +$/, ""); print; found = 1 }
    END { exit !found }' "$2.txt"
fi
