#include "harness/backends/isolation/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace attest {
namespace {

/// Of the file. Nothing maps so much at once.
constexpr rlim_t kFileBytes = rlim_t{1} << 46;

/// Of a file that is written here alone: mapped at once, as far as there are addresses.
constexpr std::size_t kMappedAtOnce = std::size_t{1} << 42, kLeastAtOnce = std::size_t{1} << 30;
/// F_SEAL_FUTURE_WRITE of Linux 5.1, which the C library's headers may lack.
constexpr int kSealFutureWrite = 0x10;

/// Where files of this process have a limit, it holds for those in memory, too.
off_t file_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return static_cast<off_t>(kFileBytes);
  return static_cast<off_t>(std::min(kFileBytes, limit.rlim_cur));
}

}  // namespace

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t Region::pages() const {
  return std::max<std::size_t>(1, (bytes + page_size() - 1) / page_size()) * page_size();
}

std::size_t RegionList::add(const std::string& name, std::size_t bytes) {
  regions_.push_back({name, end_, bytes});
  end_ += regions_.back().pages();
  return regions_.size() - 1;
}

SharedFile::SharedFile(Writers writers)
    : descriptor_(memfd_create("attest", MFD_CLOEXEC | MFD_ALLOW_SEALING)),
      only_here_(writers == Writers::here),
      sealed_(static_cast<std::size_t>(file_bytes())) {
  if (descriptor_ < 0) throw NoSharedMemory("no memory to share with a worker process");
  bool sealed = ftruncate(descriptor_, static_cast<off_t>(sealed_)) == 0;
  try {
    for (std::size_t bytes = std::min(kMappedAtOnce, sealed_); only_here_ && size_ == 0; bytes /= 2) {
      try {
        reserve(bytes);
      } catch (const NoSharedMemory&) {
        if (bytes <= kLeastAtOnce) throw;
      }
    }
    // What is mapped stays writable; no other mapping can be, nor can anybody write to the descriptor. A system older
    // than that seal keeps the copy alone from which a worker's inputs are compared.
    if (only_here_) only_here_ = fcntl(descriptor_, F_ADD_SEALS, kSealFutureWrite) == 0;
    sealed = sealed && fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    if (!sealed) throw NoSharedMemory("memory to share with a worker process can't be sealed");
    reserve(page_size());
  } catch (...) {
    if (base_) munmap(base_, size_);
    close(descriptor_);
    throw;
  }
}

SharedFile::~SharedFile() {
  if (base_) munmap(base_, size_);
  close(descriptor_);
}

void SharedFile::reserve(std::size_t bytes) {
  if (bytes <= size_) return;
  if (bytes > sealed_) {
    throw NoSharedMemory("a worker process shares more memory than files may have bytes here: see ulimit -f");
  }
  const std::size_t size = std::min(std::max(bytes, 2 * size_), sealed_);
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  if (mapped == MAP_FAILED) throw NoSharedMemory("no memory to share with a worker process");
  if (base_) munmap(base_, size_);
  base_ = static_cast<std::byte*>(mapped);
  size_ = size;
}

void SharedFile::fill(const Region& region, const void* source, const std::vector<ByteRange>& used) {
  if (only_here_) note_written(region, used);
  if (region.bytes > kCompactBytes && only_here_) {
    clear(region);
  } else if (region.bytes > kCompactBytes) {
    const int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    if (fallocate(descriptor_, how, static_cast<off_t>(region.offset), static_cast<off_t>(region.pages())) != 0) {
      throw NoSharedMemory("a shared region can't be emptied");
    }
  }
  for (const ByteRange& range : used) {
    if (range.size() == 0) continue;
    std::memcpy(data(region) + range.first, static_cast<const std::byte*>(source) + range.first, range.size());
  }
}

void SharedFile::clear(const Region& region) {
  const std::size_t page = page_size();
  for (std::size_t n = region.offset / page; n < (region.offset + region.pages()) / page; ++n) {
    if (n < written_.size() && written_[n]) std::memset(base_ + n * page, 0, page);
  }
}

void SharedFile::note_written(const Region& region, const std::vector<ByteRange>& used) {
  const std::size_t page = page_size(), first = region.offset + region.lead();
  written_.resize(std::max(written_.size(), (region.offset + region.pages()) / page));
  if (region.lead() > 0) written_[region.offset / page] = true;
  for (const ByteRange& range : used) {
    for (std::size_t n = (first + range.first) / page; n * page < first + range.end; ++n) written_[n] = true;
  }
}

double SharedFile::memory() const {
  struct stat file {};
  return fstat(descriptor_, &file) == 0 ? 512.0 * static_cast<double>(file.st_blocks) : 0;
}

std::string SharedFile::exit_messages() const {
  const char* text = reinterpret_cast<const char*>(base_);
  return {text, strnlen(text, kStepAt)};
}

GuardedArea::GuardedArea(int descriptor, const std::vector<Region>& regions, bool writable) {
  size_ = page_size();
  for (const Region& region : regions) {
    size_ += region.pages() + page_size();
  }
  void* reserved = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) throw NoSharedMemory("no address space for a case's tensors");
  base_ = static_cast<std::byte*>(reserved);
  std::byte* at = base_ + page_size();
  for (const Region& region : regions) names_.push_back(region.name);
  for (std::size_t n = 0; n < regions.size(); ++n) {
    const Region& region = regions[n];
    const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    const int now = region.bytes > kCompactBytes ? 0 : MAP_POPULATE;
    if (mmap(at, region.pages(), access, MAP_SHARED | MAP_FIXED | now, descriptor, static_cast<off_t>(region.offset)) ==
        MAP_FAILED) {
      munmap(base_, size_);
      throw NoSharedMemory("a shared region can't be mapped");
    }
    places_.push_back({names_[n].c_str(), at, at + region.lead(), at + region.pages()});
    at += region.pages() + page_size();
  }
}

GuardedArea::~GuardedArea() {
  if (base_) munmap(base_, size_);
}

bool GuardedArea::describe(const void* address, bool write, char* text, std::size_t size) const {
  const auto* at = static_cast<const std::byte*>(address);
  if (at < base_ || at >= base_ + size_) return false;
  const char* verb = write ? "wrote" : "read";
  for (const Place& place : places_) {
    // The page after a region is its own guard; the page before it is the guard of the one before.
    if (at >= place.end + page_size()) continue;
    if (at == place.end) {
      std::snprintf(text, size, "%s just beyond the end of %s", verb, place.name);
    } else if (at > place.end) {
      std::snprintf(text, size, "%s %td bytes beyond the end of %s", verb, at - place.end, place.name);
    } else if (at >= place.data) {
      std::snprintf(text, size, "%s its input %s", write ? "changed" : "can't read", place.name);
    } else {
      std::snprintf(text, size, "%s %td bytes before the start of %s", verb, place.data - at, place.name);
    }
    return true;
  }
  return false;
}

}  // namespace attest
