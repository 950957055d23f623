// Small things done to text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Without white space and line ends at both ends.
std::string trimmed(const std::string& text);

/// Whether a backend may be called so: [a-z][a-z0-9_]*, kMostOfName characters at most.
bool is_backend_name(std::string_view text);
inline constexpr std::size_t kMostOfName = 64;

/// All of them, with `between` between two.
std::string join_texts(const std::vector<std::string>& texts, std::string_view between);

/// As people write it: 1.02e16 and 2.79e-5, where fmt's %g has 1.02e+16 and 2.79e-05.
std::string number_words(double value, int digits);

/// Quoted for a POSIX shell where it must be.
std::string shell_quoted(const std::string& text);
/// A command of these words.
std::string shell_line(const std::vector<std::string>& words);

/// For terminals, drawings and XML: control characters (but line feed and tab), what turns the direction of writing,
/// and bytes that are no UTF-8 stand as \x1b. What a file or a backend calls itself must not move a cursor or end a
/// drawing.
std::string printable(const std::string& text);
/// The same on one line: line feeds and tabs, too.
std::string printable_line(const std::string& text);

/// One line of Markdown that shows the text and nothing else: no markup, no HTML, no link, nobody mentioned.
std::string markdown_text(const std::string& text);
/// A cell of CSV, quoted where it must be. Behind an apostrophe where a spreadsheet would take it for a formula: at its
/// start =, +, -, @ or their wide forms.
std::string csv_cell(const std::string& text);

}  // namespace attest
