// Memory that the harness and a worker share: regions between inaccessible pages.
#include "harness/backends/isolation/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

namespace attest {
namespace {

TEST(SharedRegions, EndAtAnInaccessiblePageAndNameWhatWasTouched) {
  SharedFile file;
  RegionList regions(page_size());
  regions.add("q", 100);
  regions.add("k", page_size() + 1);
  file.reserve(regions.end());
  std::memset(file.data(regions.all()[1]), 7, regions.all()[1].bytes);
  const GuardedArea area(file.descriptor(), regions.all(), false);
  EXPECT_EQ(area.data(1)[page_size()], std::byte{7});
  char text[80] = "";
  EXPECT_TRUE(area.describe(area.data(0) + 100, false, text, sizeof text));
  EXPECT_STREQ(text, "read just beyond the end of q");
  EXPECT_TRUE(area.describe(area.data(1) - 4, true, text, sizeof text));
  EXPECT_STREQ(text, "wrote 4 bytes before the start of k");
  EXPECT_TRUE(area.describe(area.data(0), true, text, sizeof text));
  EXPECT_STREQ(text, "changed its input q");
  EXPECT_FALSE(area.describe(text, true, text, sizeof text));
}

TEST(SharedRegions, GrowWithTheFile) {
  SharedFile file;
  RegionList regions(page_size());
  regions.add("a", 10);
  file.reserve(regions.end());
  *file.data(regions.all()[0]) = std::byte{42};
  regions.add("b", 100 * page_size());
  file.reserve(regions.end());
  EXPECT_EQ(*file.data(regions.all()[0]), std::byte{42});
  *(file.data(regions.all()[1]) + 100 * page_size() - 1) = std::byte{1};
}

/// A case that is too large under a limit of file sizes is refused, and a smaller one after it goes on.
TEST(SharedFiles, StayAsTheyAreWhereMoreCannotBeHad) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 16 * page_size();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  SharedFile file;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  RegionList regions(page_size());
  regions.add("a", 10);
  file.reserve(regions.end());
  *file.data(regions.all()[0]) = std::byte{42};
  EXPECT_THROW(file.reserve(17 * page_size()), NoSharedMemory);
  EXPECT_EQ(*file.data(regions.all()[0]), std::byte{42});
  regions.add("b", 2 * page_size());
  file.reserve(regions.end());
  *file.data(regions.all()[1]) = std::byte{1};
}

TEST(SharedFiles, KeepTheirSizeWhateverAWorkerDoesToItsDescriptor) {
  SharedFile file;
  file.reserve(10 * page_size());
  const int theirs = dup(file.descriptor());
  EXPECT_NE(ftruncate(theirs, 0), 0);
  EXPECT_NE(fcntl(theirs, F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_NE(fcntl(theirs, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  close(theirs);
  RegionList regions(page_size());
  regions.add("a", 200 * page_size());
  file.reserve(regions.end());  // and it can still be mapped for writing
  *file.data(regions.all()[0]) = std::byte{3};
  EXPECT_GE(file.memory(), static_cast<double>(page_size()));
}

TEST(SharedFiles, WrittenHereAloneCantBeWrittenByTheirDescriptor) {
  SharedFile file(SharedFile::Writers::here);
  RegionList regions(0);
  regions.add("q", 3 * page_size());
  file.reserve(regions.end());
  std::memset(file.data(regions.all()[0]), 7, regions.all()[0].bytes);
  const int theirs = dup(file.descriptor());
  EXPECT_EQ(mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, theirs, 0), MAP_FAILED);
  EXPECT_NE(pwrite(theirs, "x", 1, 0), 1);
  const auto* seen = static_cast<const std::byte*>(mmap(nullptr, page_size(), PROT_READ, MAP_SHARED, theirs, 0));
  ASSERT_NE(static_cast<const void*>(seen), MAP_FAILED);
  EXPECT_NE(mprotect(const_cast<std::byte*>(seen), page_size(), PROT_READ | PROT_WRITE), 0);
  *file.data(regions.all()[0]) = std::byte{9};
  EXPECT_EQ(seen[0], std::byte{9});
  close(theirs);
}

/// What isn't used of a region that is too large to be filled holds nothing of what was there before.
TEST(SharedFiles, WrittenHereAloneForgetWhatIsNotUsedAnyMore) {
  SharedFile file(SharedFile::Writers::here);
  RegionList regions(0);
  regions.add("q", kCompactBytes + 10 * page_size());
  const Region& region = regions.all()[0];
  file.reserve(regions.end());
  const std::vector<std::byte> ones(6 * page_size(), std::byte{1});  // no more of it is read
  file.fill(region, ones.data(), {{0, 100}, {5 * page_size(), 5 * page_size() + 1}});
  EXPECT_EQ(file.data(region)[99], std::byte{1});
  file.fill(region, ones.data(), {{50, 60}});
  EXPECT_EQ(file.data(region)[49], std::byte{0});
  EXPECT_EQ(file.data(region)[50], std::byte{1});
  EXPECT_EQ(file.data(region)[99], std::byte{0});
  EXPECT_EQ(file.data(region)[5 * page_size()], std::byte{0});
  EXPECT_LE(file.memory(), static_cast<double>(20 * page_size()));
}

TEST(SharedFiles, CountWhatIsWrittenToThem) {
  SharedFile file;
  const double before = file.memory();
  ASSERT_EQ(
      fallocate(file.descriptor(), 0, static_cast<off_t>(100 * page_size()), static_cast<off_t>(50 * page_size())), 0);
  EXPECT_GE(file.memory() - before, static_cast<double>(50 * page_size()));
}

}  // namespace
}  // namespace attest
