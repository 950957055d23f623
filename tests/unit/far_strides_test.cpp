// Storage that kernels don't expect: strides whose products pass 2^32, gaps behind the dense rows of a head.
#include <gtest/gtest.h>

#include "harness/cases/drawn.h"
#include "harness/cases/random_case.h"
#include "harness/cases/suites.h"
#include "harness/search/shrink_case.h"
#include "reference/call/tensor_place.h"
#include "tests/faulty/keeping.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

int failures_in_matrix(const char* name, const std::string& with) {
  const BackendSet backends(faulty::keeping_backends(), {name}, {1, ""});
  int failures = 0;
  for (const Case& source : load_suite(find_suite("matrix"))) {
    if (source.label.find(with) == std::string::npos) continue;
    failures += is_failure(check_line(source, *backends.all().front(), 1));
  }
  return failures;
}

TEST(FarStrides, AnIndexOf32BitsWithoutSignIsFound) {
  EXPECT_GE(failures_in_matrix("index_of_32_bits", "1431655801"), 5);
  EXPECT_GE(failures_in_matrix("index_of_32_bits", "2147483655"), 1);
  EXPECT_EQ(failures_in_matrix("honest_keeper", "1431655801"), 0);
}

TEST(FarStrides, WhatIsWrittenBehindTheRowsOfAHeadIsFound) {
  EXPECT_GE(failures_in_matrix("whole_vectors", "out.strides=99,33,4,1"), 1);
  EXPECT_GE(failures_in_matrix("whole_vectors", "out.strides=57,19,3,1"), 1);
  EXPECT_EQ(failures_in_matrix("honest_keeper", "out.strides=99,33,4,1"), 0);
}

struct Met {
  int far = 0, gaps = 0;

  void look_at(const Problem& p) {
    for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::out}) {
      if (!p.call.tensor(id).strides) continue;
      const TensorPlace place = place_of(p, id);
      const Index4 n = place.shape, s = place.strides;
      far += place.elements.value_or(0) > std::int64_t{1} << 32;
      gaps += s[3] == 1 && s[2] == n[3] && n[1] > 1 && n[2] > 1 && s[1] > n[2] * n[3];
    }
  }
};

TEST(FarStrides, RandomCasesAndTheClassesOfTheTableHaveBoth) {
  Met random, drawn;
  Random numbers(5);
  for (int n = 0; n < 3000; ++n) random.look_at(random_case(numbers));
  for (int seed = 0; seed < 3; ++seed) {
    for (const Problem& p : drawn_problems(static_cast<std::uint64_t>(seed))) drawn.look_at(p);
  }
  EXPECT_GT(random.gaps, 20);
  EXPECT_GT(drawn.far, 0);
  EXPECT_GT(drawn.gaps, 0);
}

}  // namespace
}  // namespace attest
