#include "harness/base/fingerprint.h"

#include <link.h>

#include <algorithm>
#include <fstream>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace attest {

namespace fs = std::filesystem;

struct Fingerprint::State {
  XXH3_state_t hash;
};

Fingerprint::Fingerprint() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->hash); }
Fingerprint::~Fingerprint() = default;

void Fingerprint::add(const void* bytes, std::size_t size) { XXH3_128bits_update(&state_->hash, bytes, size); }

std::string Fingerprint::text() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->hash));
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    for (const unsigned digit : {byte / 16u, byte % 16u}) text += "0123456789abcdef"[digit];
  }
  return text;
}

std::string fingerprint_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  Fingerprint hash;
  std::vector<char> piece(std::size_t{1} << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    hash.add(piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  return hash.text();
}

std::vector<fs::path> loaded_libraries() {
  std::vector<fs::path> files;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* list) {
        const fs::path path = info->dlpi_name;  // the program's own is empty; the kernel's has no folder
        if (path.is_absolute()) static_cast<std::vector<fs::path>*>(list)->push_back(path);
        return 0;
      },
      &files);
  std::sort(files.begin(), files.end());
  return files;
}

std::string fingerprint_of(const std::vector<fs::path>& files) {
  std::vector<std::string> each;
  for (const fs::path& file : files) each.push_back(fingerprint_of(file));
  std::sort(each.begin(), each.end());
  Fingerprint all;
  for (const std::string& one : each) all.add(one);
  return all.text();
}

}  // namespace attest
