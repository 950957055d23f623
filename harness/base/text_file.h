// Text files that are not trusted: neither their size nor the length of a line decides how much memory is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <istream>
#include <string>

namespace attest {

/// Opens a file of at most `max_bytes`. Throws UserError for one that is larger, a folder, or can't be read.
std::ifstream open_text(const std::filesystem::path& path, std::uintmax_t max_bytes);

/// The next line without its end, as std::getline; of a line longer than `max_size` nothing but `too_long` comes back.
struct Line {
  std::string text;
  bool too_long = false;
};
bool read_line(std::istream& file, Line& line, std::size_t max_size);

}  // namespace attest
