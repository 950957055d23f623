// Memory that the harness and a worker process share: a file in memory, cut into regions.
//
// Each region ends at the end of a page. The harness maps the whole file; a worker maps every region by itself between
// pages that nobody may touch, so that one element too far is caught at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/backends/isolation/step_note.h"
#include "harness/cases/tensor_bytes.h"

namespace attest {

/// One tensor's bytes. `offset` is where its pages begin in the file.
struct Region {
  std::string name;
  std::size_t offset = 0, bytes = 0;
  std::size_t pages() const;                            ///< bytes rounded up to whole pages; one page at least
  std::size_t lead() const { return pages() - bytes; }  ///< bytes before the data, in the first page
};

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

/// The system gives no memory to share, or limits the size of files (ulimit -f) to less than a case needs.
struct NoSharedMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The harness's side: a file in memory, of which it maps as much as was asked for. Throws NoSharedMemory.
///
/// The file is larger than anything will be and takes no memory where nothing was written. It is sealed at that size: a
/// worker, whose descriptor leads to the same file, could otherwise cut off what is mapped here.
class SharedFile {
 public:
  /// Who may write to it: a file that is written here alone is sealed against all others, whatever rights they have to
  /// its descriptor. It is mapped as a whole then, and keeps the memory of what was ever written.
  enum class Writers { both, here };
  explicit SharedFile(Writers writers = Writers::both);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// Maps at least this much. Pointers from before are void, but stay where this throws.
  void reserve(std::size_t bytes);
  /// Copies those bytes of `source` that lie in `used` (harness/cases/tensor_bytes.h), counted from the start of the
  /// region's data; where they aren't all, the others become zeros that take no memory, and so does the region's lead.
  void fill(const Region& region, const void* source, const std::vector<ByteRange>& used);
  std::byte* data(const Region& region) const { return base_ + region.offset + region.lead(); }
  std::byte* pages(const Region& region) const { return base_ + region.offset; }
  std::size_t mapped() const { return size_; }
  /// Bytes of memory that the file takes by now, whoever wrote them.
  double memory() const;
  /// What a worker wrote about its own end; empty when it wrote nothing.
  std::string exit_messages() const;
  /// In which step the worker is, by its own account.
  StepNote step() const { return StepNote(base_); }

 private:
  /// Zeros in what was written of these pages before.
  void clear(const Region& region);
  void note_written(const Region& region, const std::vector<ByteRange>& used);

  int descriptor_;
  bool only_here_;
  std::vector<bool> written_;  ///< of a file that is written here alone, by page
  std::size_t sealed_;         ///< bytes of the file: no more can ever be mapped
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

/// The worker's side: regions between inaccessible pages.
class GuardedArea {
 public:
  /// `writable` false: any write to a region is a fault.
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
  std::vector<std::string> names_;
  std::vector<Place> places_;
};

}  // namespace attest
