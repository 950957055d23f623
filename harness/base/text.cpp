#include "harness/base/text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace attest {
namespace {

/// Bytes of the UTF-8 character that `text` begins with, and which it is; no bytes where it is none.
struct Character {
  std::size_t bytes;
  std::uint32_t code;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t n) -> std::uint32_t { return static_cast<unsigned char>(text[n]); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t bytes = lead >= 0xf0 && lead < 0xf8 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
  if (bytes == 0 || lead >= 0xf8 || text.size() < bytes) return {0, 0};
  std::uint32_t code = lead & (0xffu >> (bytes + 1));
  for (std::size_t n = 1; n < bytes; ++n) {
    if ((byte(n) & 0xc0) != 0x80) return {0, 0};
    code = code << 6 | (byte(n) & 0x3f);
  }
  const std::uint32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;  // longer than it needs is not UTF-8
  const bool good = code >= least && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return {good ? bytes : 0, code};
}

/// Marks that turn the direction of what follows, and Unicode's own ends of lines: text would not read as it stands.
bool misleads(std::uint32_t code) {
  return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string escaped(const std::string& text, std::string_view allowed) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = first_character(std::string_view(text).substr(at));
    // C0, delete, and C1, with which a terminal begins a command, too.
    const bool control = c.code < 0x20 || (c.code >= 0x7f && c.code < 0xa0) || misleads(c.code);
    const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
    if (c.bytes > 0 && (!control || allowed.find(text[at]) != std::string_view::npos)) {
      result.append(text, at, bytes);
    } else {
      for (std::size_t n = 0; n < bytes; ++n) {
        char code[5];
        std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[at + n])));
        result += code;
      }
    }
    at += bytes;
  }
  return result;
}

}  // namespace

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool is_backend_name(std::string_view text) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && text.size() <= kMostOfName && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

std::string join_texts(const std::vector<std::string>& texts, std::string_view between) {
  std::string all;
  for (std::size_t n = 0; n < texts.size(); ++n) all.append(n == 0 ? "" : between).append(texts[n]);
  return all;
}

std::string number_words(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  std::string words = text;
  std::size_t at = words.find('e');
  if (at == std::string::npos || at + 1 == words.size()) return words;
  if (words[++at] == '+') words.erase(at, 1);
  if (words[at] == '-') ++at;
  while (at + 1 < words.size() && words[at] == '0') words.erase(at, 1);
  return words;
}

std::string shell_quoted(const std::string& text) {
  if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+") ==
          std::string::npos &&
      !text.empty()) {
    return text;
  }
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_quoted(word));
  return join_texts(quoted, " ");
}

std::string printable(const std::string& text) { return escaped(text, "\n\t"); }

std::string printable_line(const std::string& text) { return escaped(text, ""); }

std::string markdown_text(const std::string& text) {
  constexpr std::string_view kMarkup = "&<>|\\`*_[]{}#!~@$^";
  std::string result;
  const std::string line = printable_line(text);
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    // "://" and "www." are links by themselves; a line may begin with the sign of a list or a heading.
    const bool link = (c == ':' && line.compare(at, 3, "://") == 0) || (c == '.' && at > 0 && line[at - 1] == 'w');
    const bool begins = at == 0 && std::string_view("-+= ").find(c) != std::string_view::npos;
    const bool numbers = (c == '.' || c == ')') && at > 0 && line.find_first_not_of("0123456789") == at &&
                         (at + 1 == line.size() || line[at + 1] == ' ');
    if (kMarkup.find(c) != std::string_view::npos || link || begins || numbers) {
      result += "&#" + std::to_string(static_cast<int>(c)) + ";";
    } else {
      result += c;
    }
  }
  return result;
}

std::string csv_cell(const std::string& text) {
  std::string cell = printable_line(text);
  // Full-width = + - @ are formulas to spreadsheets in some languages.
  for (const std::string_view start :
       {"=", "+", "-", "@", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"}) {
    if (!cell.starts_with(start)) continue;
    cell.insert(0, 1, '\'');
    break;
  }
  if (cell.find_first_of(",\"") == std::string::npos && trimmed(cell) == cell) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace attest
