// What a function prints to a file, as text.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

namespace attest {

/// `print` is given the file. Throws what it throws.
inline std::string printed_text(const std::function<void(std::FILE*)>& print) {
  struct Text {
    char* data = nullptr;
    std::size_t size = 0;
    std::FILE* file = open_memstream(&data, &size);
    ~Text() {
      if (file) std::fclose(file);
      std::free(data);
    }
  } text;
  if (!text.file) throw std::bad_alloc();
  print(text.file);
  std::fflush(text.file);
  return {text.data, text.size};
}

}  // namespace attest
