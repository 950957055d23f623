# markdown.awk: what the documents' tests read of a Markdown file, one finding a line, fields separated by tabs.
#
#   awk -v want=blocks   line, language, section, text     each line of each fenced block
#   awk -v want=anchors  anchor                            each heading, as GitHub links to it
#   awk -v want=links    line, target                      each link and image
#   awk -v want=faults   line, complaint                   what the other three can't read
#   awk -v want=code     line, text                        each inline code span

# GitHub's name of a heading: lower case, no punctuation, hyphens for spaces, -1 for the second of a name.
function anchor_of(title,  name) {
  name = tolower(title)
  gsub(/[^a-z0-9 _-]/, "", name)
  gsub(/ /, "-", name)
  return seen[name]++ ? name "-" (seen[name] - 1) : name
}

function fault(complaint) { if (want == "faults") print FNR "\t" complaint }

BEGIN { if (want !~ /^(blocks|anchors|links|faults|code)$/) { print "markdown.awk: want?" > "/dev/stderr"; exit 2 } }

/^ *```/ {
  if ($0 !~ /^```/) fault("a fence begins at the start of a line")
  inside = !inside
  language = substr($0, 4)
  if (inside && language == "") fault("a fenced block names its language: sh, text, cpp, ...")
  next
}
inside { if (want == "blocks") print FNR "\t" language "\t" section "\t" $0; next }

/^#+ / { title = $0; sub(/^#+ */, "", title); section = anchor_of(title); if (want == "anchors") print section }
/^    / { fault("indented by four: code stands between fences, where it is tested") }

{
  text = $0
  while (match(text, /`[^`]*`/)) {
    if (want == "code") print FNR "\t" substr(text, RSTART + 1, RLENGTH - 2)
    text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
  }
  if (text ~ /`/) fault("a code span goes on in the next line")
  if (want != "links") next
  if (match(text, /^\[[^]]*\]: */)) print FNR "\t" substr(text, RLENGTH + 1)
  while (match(text, /\]\([^)]*\)/)) {
    print FNR "\t" substr(text, RSTART + 2, RLENGTH - 3)
    text = substr(text, RSTART + RLENGTH)
  }
}

END { if (inside) fault("a fence is not closed") }
