#include "reference/operators/projection.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace attest {
namespace {

TEST(Projection, MultipliesAndRefusesWhatDoesNotFit) {
  const Matrix x{1, 2, {3, 4}}, w{2, 2, {1, 2, 3, 4}};
  EXPECT_EQ(project(x, w).values, (std::vector<double>{15, 22}));
  EXPECT_THROW(project(w, x), std::invalid_argument);
}

}  // namespace
}  // namespace attest
