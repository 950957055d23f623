#!/usr/bin/env bash
# every_test_asserts.sh [FILE...]: no body of a TEST, TEST_F or TEST_P is without an assertion. One counts that stands in
# the body itself, or in a function of the same file or of helpers.h that the body calls, directly or through others.
# Comments and strings count for nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- unit/*_test.cpp
status=0
for file in "$@"; do
  awk -v file="$file" '
    function is_assertion(text) { return text ~ /(^|[^A-Za-z_])(EXPECT_[A-Z]|ASSERT_[A-Z]|ADD_FAILURE|GTEST_FAIL|FAIL *\(|SUCCEED *\()/ }
    # Text in which braces and names are code: without comments, strings and characters.
    function code_of(line,  out, c, n, quote) {
      for (n = 1; n <= length(line); ++n) {
        c = substr(line, n, 1)
        if (comment) { if (substr(line, n, 2) == "*/") { comment = 0; ++n } continue }
        if (raw) { if (substr(line, n, 2) == ")\"") { raw = 0; ++n } continue }
        if (quote) { if (c == "\\") ++n; else if (c == quote) quote = ""; continue }
        if (substr(line, n, 2) == "//") break
        if (substr(line, n, 2) == "/*") { comment = 1; ++n; continue }
        if (substr(line, n, 3) == "R\"(") { raw = 1; n += 2; continue }
        if (c == "\"" || (c == "\047" && out !~ /[0-9]$/)) { quote = c; continue }
        out = out c
      }
      return out
    }
    # What opens at a brace, from the text before it: a test, a function, or something without a name.
    function opened(text) {
      gsub(/[ \t]+/, " ", text)
      if (match(text, /TEST(_F|_P)? ?\([^)]*\) ?$/)) {
        text = substr(text, RSTART, RLENGTH)
        sub(/^TEST(_F|_P)? ?\( ?/, "", text); sub(/ ?\) ?$/, "", text); sub(/ ?, ?/, ".", text)
        return "test " text
      }
      if (text ~ /^[^(]*=/ || !match(text, /[A-Za-z_][A-Za-z0-9_]* ?\(/)) return ""
      text = substr(text, RSTART, RLENGTH)
      sub(/ ?\($/, "", text)
      return text ~ /^(if|for|while|switch|catch|return|sizeof|decltype)$/ ? "" : text
    }
    /^ *#/ { next }
    FILENAME == file && /^TEST(_F|_P)?\(/ { ++written }
    {
      text = code_of($0)
      for (n = 1; n <= length(text); ++n) {
        c = substr(text, n, 1)
        if (c == "{") {
          ++depth
          name = named ? "" : opened(before)
          if (name != "") { named = depth; current = name; at[name] = FILENAME ":" FNR; body[name] = body[name] " " }
          before = ""
        } else if (c == "}") {
          if (depth == named) named = 0
          --depth
          before = ""
        } else if (c == ";" && !named) {
          before = ""
        } else if (!named) {
          before = before c
        }
        if (named) body[current] = body[current] c
      }
      if (named) body[current] = body[current] " "; else before = before " "
    }
    END {
      for (name in body) if (is_assertion(body[name])) asserts[name] = 1
      do {  # until no function is added that calls one that asserts
        added = 0
        for (name in body) {
          if (name in asserts) continue
          for (helper in asserts) {
            if (helper ~ /^test / || body[name] !~ ("(^|[^A-Za-z0-9_])" helper " ?(<[^()]*>)?\\(")) continue
            asserts[name] = 1
            added = 1
            break
          }
        }
      } while (added)
      for (name in body) {
        if (name !~ /^test / || at[name] !~ ("^" file)) continue
        ++tests
        if (!(name in asserts)) { print at[name] ": " substr(name, 6) " asserts nothing"; wrong = 1 }
      }
      if (!tests || tests != written) { print file ": " written " tests, but " tests + 0 " bodies found"; wrong = 1 }
      exit wrong
    }' unit/helpers.h "$file" || status=1
done
exit $status
