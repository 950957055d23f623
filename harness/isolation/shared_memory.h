// Memory that the harness and a worker process share: a file in memory, cut into regions.
//
// Each region ends at the end of a page. The harness maps the whole file; a worker maps every region by itself between
// pages that nobody may touch, so that one element too far is caught at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/tensor_bytes.h"

namespace attest {

/// One tensor's bytes. `offset` is where its pages begin in the file.
struct Region {
  std::string name;
  std::size_t offset = 0, bytes = 0;
  std::size_t pages() const;                            ///< bytes rounded up to whole pages; one page at least
  std::size_t lead() const { return pages() - bytes; }  ///< bytes before the data, in the first page
};

/// Where in the first page of the file a worker notes its step; its last words stand before.
inline constexpr std::size_t kStepAt = 3072, kStepBytes = 64;

/// Lays regions one after another, from `offset` on.
class RegionList {
 public:
  explicit RegionList(std::size_t offset) : end_(offset) {}
  /// Index of the new region.
  std::size_t add(const std::string& name, std::size_t bytes);
  const std::vector<Region>& all() const { return regions_; }
  std::size_t end() const { return end_; }

 private:
  std::vector<Region> regions_;
  std::size_t end_;
};

std::size_t page_size();

/// The harness's side: a file in memory, mapped as a whole, growing when asked.
class SharedFile {
 public:
  SharedFile();
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// Makes the file at least this large. Pointers from before are void.
  void reserve(std::size_t bytes);
  /// Copies those bytes of `source` that lie in `used` (harness/cases/tensor_bytes.h), counted from the start of the
  /// region's data; where they aren't all, the others become zeros that take no memory, and so does the region's lead.
  void fill(const Region& region, const void* source, const std::vector<ByteRange>& used);
  std::byte* data(const Region& region) const { return base_ + region.offset + region.lead(); }
  std::byte* pages(const Region& region) const { return base_ + region.offset; }
  /// What a worker wrote about its own end; empty when it wrote nothing.
  std::string last_words() const;
  /// In which step the worker is, by its own account.
  std::string step() const;

 private:
  int descriptor_;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

/// The worker's side: regions between inaccessible pages.
class GuardedArea {
 public:
  /// `writable` false: any write to a region is a fault. Regions beyond kCompactBytes don't count for this process's
  /// limit of addresses: most of them is never touched.
  GuardedArea(int descriptor, const std::vector<Region>& regions, bool writable);
  ~GuardedArea();
  GuardedArea(const GuardedArea&) = delete;
  GuardedArea& operator=(const GuardedArea&) = delete;

  std::byte* data(std::size_t region) const { return places_[region].data; }
  /// What an access to `address` means for these regions ("4 bytes beyond the end of k"); empty when it isn't theirs.
  /// Only reads memory that is set up: it may be called from a signal handler.
  bool describe(const void* address, bool write, char* text, std::size_t size) const;

 private:
  struct Place {
    const char* name;
    std::byte *first, *data, *end;
  };
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  std::size_t allowance_ = 0;  ///< by which the limit of addresses is higher while this lives
  std::vector<std::string> names_;
  std::vector<Place> places_;
};

}  // namespace attest
