// Kernels that quantise keys with a step for each group of them: NaN in a hidden key reaches rows that see its group.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "harness/probe/probe.h"
#include "harness/search/shrink_case.h"
#include "harness/verdict/stated_conventions.h"
#include "tests/faulty/around.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

/// Keys and values in f32, of which groups of `keys` share a step: where one isn't finite, none of them has a number.
class SharedSteps : public faulty::BackendAround {
 public:
  SharedSteps(std::int64_t keys, std::string stated)
      : BackendAround(faulty::make_example()), keys_(keys), stated_(std::move(stated)) {}
  Conventions conventions() const override {
    Conventions c;
    c.hidden_nan = stated_;
    return c;
  }
  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<Quantised>(BackendAround::prepare(call), keys_);
  }

 private:
  class Quantised : public faulty::PlanAround {
   public:
    Quantised(std::unique_ptr<Plan> inner, std::int64_t keys) : PlanAround(std::move(inner)), keys_(keys) {}
    void upload(const Inputs& inputs) override {
      Inputs changed = inputs;
      lose_groups(changed.change(TensorId::k), k_);
      lose_groups(changed.change(TensorId::v), v_);
      PlanAround::upload(changed);
    }

   private:
    void lose_groups(ConstTensor& tensor, std::vector<float>& own) const {
      const std::int64_t features = tensor.shape[3], head = tensor.shape[2] * features, batch = tensor.shape[1] * head;
      const auto at = [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        return static_cast<std::size_t>(b * batch + h * head + l * features + d);
      };
      own.resize(static_cast<std::size_t>(tensor.shape[0] * batch));
      std::vector<bool> lost(own.size());  // by the first row of a group
      each_index(tensor.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        own[at(b, h, l, d)] = static_cast<float>(load(tensor.data, tensor.dtype, tensor.offset(b, h, l, d)));
        if (!std::isfinite(own[at(b, h, l, d)])) lost[at(b, h, l / keys_ * keys_, 0)] = true;
      });
      each_index(tensor.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        if (lost[at(b, h, l / keys_ * keys_, 0)]) own[at(b, h, l, d)] = static_cast<float>(kNaN);
      });
      tensor.data = own.data();
      tensor.strides = {batch, head, features, 1};
    }

    std::int64_t keys_;
    std::vector<float> k_, v_;
  };

  std::int64_t keys_;
  std::string stated_;
};

std::string_view verdict_on(const std::string& line, std::int64_t keys, const std::string& stated) {
  SharedSteps backend(keys, stated);
  return name_of(check_line(case_from_line(line), backend, 1).status);
}

TEST(SharedSteps, AreRightOnlyByTheStatement) {
  // Rows 0 to 6 hide keys 7 to 39, which are NaN: those from row 4 on see a key of the first one's group.
  const std::string line = "seq=7x40 dim=4 causal align=top-left poison=hidden:kv";
  EXPECT_EQ(verdict_on(line, 4, "shares steps of 4 keys"), "convention");
  EXPECT_EQ(verdict_on(line, 4, "stays out"), "fail");
  EXPECT_EQ(verdict_on(line, 4, "shares steps of 2 keys"), "fail") << "too narrow";
  EXPECT_EQ(verdict_on(line, 8, "shares steps of 4 keys"), "fail") << "too narrow";
  EXPECT_EQ(verdict_on("seq=7x40 dim=4 causal align=top-left", 4, "shares steps of 4 keys"), "pass");
}

TEST(SharedSteps, AreProbed) {
  const auto observed = [](std::int64_t keys, const std::string& stated) {
    SharedSteps backend(keys, stated);
    for (const ProbedStatement& s : probe_conventions(backend)) {
      if (s.name == "hidden_nan") return s.observed + (s.holds ? "" : ", unlike stated");
    }
    return std::string("not probed");
  };
  EXPECT_EQ(observed(32, "shares steps of 32 keys"), "shares steps of 32 keys");
  EXPECT_EQ(observed(48, "shares steps of 48 keys"), "shares steps of 48 keys");
  EXPECT_EQ(observed(7, "shares steps of 7 keys"), "shares steps of 7 keys");
  EXPECT_EQ(observed(16, "shares steps of 32 keys"), "shares steps of 16 keys, unlike stated");
  EXPECT_EQ(observed(64, "shares steps of 32 keys"), "shares steps of 64 keys, unlike stated");
  EXPECT_EQ(observed(1, "shares steps of 32 keys"), "stays out, unlike stated");
  EXPECT_EQ(observed(32, "stays out"), "leaks, unlike stated");
  EXPECT_EQ(observed(32, "leaks"), "leaks");
}

TEST(SharedSteps, HaveANumberOfKeys) {
  EXPECT_EQ(keys_of_shared_step("shares steps of 64 keys"), 64);
  for (const char* other : {"leaks", "shares steps of keys", "shares steps of  keys", "shares steps of N keys",
                            "shares steps of 1 keys", "shares steps of 2048 keys", "shares steps of 6x keys",
                            "shares steps of -4 keys", "shares steps of 64 keys or so"}) {
    EXPECT_FALSE(keys_of_shared_step(other)) << other;
  }
  EXPECT_TRUE(is_convention_value("hidden_nan", "shares steps of 64 keys"));
  EXPECT_FALSE(is_convention_value("hidden_nan", "shares steps of N keys"));
}

}  // namespace
}  // namespace attest
