// Enumerations and their names.
#include "reference/base/names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "harness/cases/safetensors.h"
#include "harness/verdict/verdict.h"
#include "reference/arithmetic/arithmetic.h"
#include "reference/call/problem.h"

namespace attest {
namespace {

// The last value of each: a table that ends before it does not compile.
static_assert(name_of(DType::bf16) == "bf16");
static_assert(name_of(Align::bottom_right) == "bottom-right");
static_assert(name_of(Layout::thd) == "thd");
static_assert(name_of(TensorId::out) == "out");
static_assert(name_of(Op::gated_delta) == "gated_delta");
static_assert(name_of(Output::present) == "present");
static_assert(name_of(Division::opencl_reciprocal) == "opencl_reciprocal");
static_assert(name_of(ScalePlacement::split_root) == "split_root");
static_assert(name_of(Status::timeout) == "timeout");

template <NamedEnum E>
void leads_back() {
  std::set<std::string> seen;
  for (const E value : values_of<E>()) {
    EXPECT_TRUE(seen.emplace(name_of(value)).second) << name_of(value) << " twice";
    EXPECT_EQ(value_named<E>(name_of(value)), value);
  }
  EXPECT_EQ(seen.size(), kNames<E>.size());
  EXPECT_FALSE(value_named<E>(""));
  EXPECT_FALSE(value_named<E>("no such name"));
  EXPECT_THROW((void)name_of(static_cast<E>(kNames<E>.size())), std::out_of_range);
}

TEST(Names, EachLeadsBackToItsValue) {
  leads_back<DType>();
  leads_back<Align>();
  leads_back<Layout>();
  leads_back<TensorId>();
  leads_back<Op>();
  leads_back<Output>();
  leads_back<Division>();
  leads_back<ScalePlacement>();
  leads_back<Status>();
}

TEST(FileTypes, EveryTypeOfACaseHasOneInFilesOfItsSize) {
  for (const DType dtype : kWideTypes) {
    const FileType* type = find_file_type(file_type_of(dtype));
    ASSERT_NE(type, nullptr) << name_of(dtype);
    EXPECT_EQ(type->stored, dtype);
    EXPECT_EQ(type->bytes(), size_of(dtype)) << name_of(dtype);
  }
  EXPECT_EQ(find_file_type("f32"), nullptr);
}

}  // namespace
}  // namespace attest
