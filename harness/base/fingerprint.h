// Whether two files, or two programs, are the same: by their contents, not by their names or times.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace attest {

/// A hash of bytes in pieces: 128 bits of XXH3. It tells accidents apart, not forgeries.
class Fingerprint {
 public:
  Fingerprint();
  ~Fingerprint();
  void add(const void* bytes, std::size_t size);
  void add(const std::string& text) { add(text.data(), text.size()); }
  /// Of all that was added: 32 hexadecimal digits.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Of a file's contents; "" when it can't be read.
std::string fingerprint_of(const std::filesystem::path& file);

/// The shared libraries that this process has loaded now, sorted. The C library counts: its exp and log do.
std::vector<std::filesystem::path> loaded_libraries();
/// Of the contents of several files, whatever their order and names.
std::string fingerprint_of(const std::vector<std::filesystem::path>& files);

}  // namespace attest
