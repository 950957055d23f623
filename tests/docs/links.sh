#!/usr/bin/env bash
# links.sh [FOLDER]: every relative link in every document below FOLDER (the project) leads to a file or folder that is
# there, and its anchor to a heading. Every document that a comment of a script or a suite names is there, too, and every
# file of the project that a comment of a source names.
set -euo pipefail
source "$(dirname "$0")/documents.sh"
folder=$(cd "${1:-$root}" && pwd)
cd "$folder"
failures=$(
  documents "$folder" | while read -r document; do
    markdown faults "$document" | while IFS=$'\t' read -r line complaint; do echo "$document:$line: $complaint"; done
    markdown links "$document" | while IFS=$'\t' read -r line target; do
      case $target in http://* | https://* | mailto:*) continue ;; esac
      path=${target%%#*}
      place=$(dirname "$document")/$path
      [ -n "$path" ] || place=$document
      if [ ! -e "$place" ]; then
        echo "$document:$line: dead link: $target"
      elif [ "$target" != "$path" ] && ! { [ -f "$place" ] && markdown anchors "$place" | grep -qxF -- "${target#*#}"; }; then
        echo "$document:$line: dead anchor: $target"
      fi
    done
  done
  # Comments name documents by their path from the top, or by one beside the source.
  [ "$folder" != "$root" ] ||
    grep -rnE --exclude-dir=build --include='*.sh' --include='CMakeLists.txt' --include='*.cases' --include='*.yml' '^ *#.*\.md\b' \
      .github CMakeLists.txt reference backends harness tests scripts |
    while IFS=: read -r source line text; do
      for name in $(grep -oE '[A-Za-z_./-]+\.md\b' <<<"$text"); do
        [ -e "$name" ] || [ -e "$(dirname "$source")/$name" ] || echo "$source:$line: no such document: $name"
      done
    done
  # Those of sources name any file, but for what is quoted as an example, and files of a FOLDER/ that the user names.
  [ "$folder" != "$root" ] ||
    grep -rnoE --exclude-dir=build --include='*.h' --include='*.cpp' --include='*.cl' '(^|[^:"])//.*\.(h|cpp|cl|md|sh|awk|txt|cases|cmake|py|json)\b.*' \
      reference backends harness tests |
    while IFS=: read -r source line text; do
      for name in $(sed 's/"[^"]*"//g; s/`[^`]*`//g' <<<"$text" |
        grep -oE '[A-Za-z0-9_<>./-]+\.(h|cpp|cl|md|sh|awk|txt|cases|cmake|py|json)\b(\.in\b)?'); do
        case $name in /* | [A-Z]*[A-Z]/* | *'<'*) continue ;; esac
        [ -e "$name" ] || [ -e "$(dirname "$source")/$name" ] || echo "$source:$line: no such file: $name"
      done
    done
)
[ -z "$failures" ] || { echo "$failures" >&2; exit 1; }
echo "links: $(documents "$folder" | wc -l) documents, no dead link"
