#!/usr/bin/env bash
# new_backend.sh SOURCE: follows backends/README.md#in-this-tree and #a-failure-explained to the letter. A copy of the example
# under a new name builds and passes smoke, no file that was there before has changed, and a mistake is found.
set -euo pipefail
source "$(dirname "$0")/../docs/documents.sh"
source "$(dirname "$0")/copy_project.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy_project "$1" "$work/attest"
cd "$work/attest"
export CCACHE_BASEDIR=$PWD  # where a compiler's cache is in use, it knows the copy's files
find . -type f | sort | xargs sha256sum >"$work/before"

# The guide's commands as they stand; what it takes no interest in is not built.
cmake() {
  command cmake "$@" $example_alone
}
follow() { # SECTION
  run_commands "$work/log" < <(commands backends/README.md | awk -F '\t' -v section="$1" '$2 == section { print "backends/README.md:" $1 "\t" $3 }')
}
follow in-this-tree
build/bin/attest list backends | grep '^mine '
# The same by one command; the folder is built as it comes.
build/bin/attest new-backend second_one --in-tree >/dev/null
cmake -S . -B build >/dev/null
ninja -C build attest >/dev/null
build/bin/attest check --suite smoke --backend second_one | tail -n 1
follow a-failure-explained
grep -q "none of the next smaller ones fails" "$work/log"
sha256sum --quiet -c "$work/before"
