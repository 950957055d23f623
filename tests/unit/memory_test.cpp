// How much memory a case takes, asked before it is made.
#include "harness/cases/memory.h"

#include <gtest/gtest.h>

#include <string>

#include "harness/base/user_error.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

TEST(Memory, AbsurdSizesAreRefusedBeforeAllocating) {
  EXPECT_THROW(check_memory(parse_case("seq=999999999 dim=64"), "x"), UserError);
  EXPECT_NO_THROW(check_memory(parse_case("seq=9 dim=64"), "x"));
}

TEST(Memory, SizesWithoutElementsAreRefusedWhereNobodyCouldWalkOverThem) {
  for (const char* line :
       {"batch=1000000000000 seq=0 dim=4", "heads=1000000000000 seq=0 dim=4", "seq=0 dim=1099511627776",
        "heads=1000000000000/1 seq=0 dim=4", "heads=0 seq=1000000000000 dim=4", "heads=0 seq=0x1000000000000 dim=4",
        "seq=0 dim=4/1099511627776"}) {
    EXPECT_THROW(check_memory(parse_case(line), line), UserError) << line;
  }
  for (const char* line :
       {"batch=134217728 seq=0 dim=4", "batch=0 heads=134217728 seq=134217728 dim=1", "seq=0 dim=134217728"}) {
    EXPECT_EQ(beyond_walking(parse_case(line)), std::nullopt) << line;
  }
}

TEST(Memory, IsThatOfTheTensorsThatAreStored) {
  EXPECT_EQ(storage_bytes(parse_case("batch=2 heads=4/2 seq=3x5 dim=6/7")),
            4.0 * (2 * 4 * 3 * 6 + 2 * 2 * 5 * 6 + 2 * 2 * 5 * 7 + 2 * 4 * 3 * 7));
  const double plain = storage_bytes(parse_case("heads=2 seq=8 dim=4"));
  for (const char* more : {"mask=bool:BHQK:all", "mask=add:BHQK:normal", "blocks=2x2:all", "out=o,weights",
                           "out=o,present", "q.offset=5"}) {
    EXPECT_GT(storage_bytes(parse_case("heads=2 seq=8 dim=4 " + std::string(more))), plain) << more;
  }
  EXPECT_EQ(2 * storage_bytes(parse_case("dtype=f16 heads=2 seq=8 dim=4")), plain);
  EXPECT_GT(memory_needed(parse_case("heads=2 seq=8 dim=4")), 2 * plain);  // a backend has its own
}

}  // namespace
}  // namespace attest
