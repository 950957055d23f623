// A backend that does little is met by little: what is left of a problem is accepted, and keeps what can be kept.
#include "harness/search/accepted_part.h"

#include "harness/cases/random_case.h"
#include "harness/search/fuzz.h"
#include "reference/options/options.h"
#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

std::string part_of(const std::string& line, const std::function<bool(const Problem&)>& accepts,
                    const Problem* always = nullptr) {
  const std::optional<Problem> part = accepted_part(parse_case(line), accepts, always);
  return part ? print_case(*part) : "nothing";
}

TEST(AcceptedPart, DropsWhatIsRefusedAndKeepsTheRest) {
  const auto no_masks = [](const Call& p) { return !p.mask && p.dtype == DType::f32; };
  EXPECT_EQ(part_of("dtype=f16 batch=2 seq=9 dim=4 causal mask=bool:BHQK:all softcap=3 seed=7", no_masks),
            "batch=2 seq=9 dim=4 causal softcap=3 seed=7");
}

TEST(AcceptedPart, SizesGiveWayToUsualOnes) {
  EXPECT_EQ(part_of("seq=70 dim=7/9 causal", [](const Call& p) { return p.key_dim == 64 && p.value_dim == 64; }),
            "seq=70 dim=64 causal");
  EXPECT_EQ(part_of("seq=70x80 dim=7 causal align=top-left",
                    [](const Call& p) {
                      return p.dtype == DType::bf16 && p.key_dim == 128 && p.query_length % 64 == 0 &&
                             p.key_length == p.query_length;
                    }),
            "dtype=bf16 seq=64 dim=128 causal");
  EXPECT_EQ(part_of("seq=70 dim=7", [](const Problem&) { return false; }), "nothing");
}

TEST(AcceptedPart, WhatEveryCaseHasComesFirst) {
  const auto codes = [](const Call& p) { return type_of(p, TensorId::k) == DType::i8 && !p.mask; };
  const Problem always = with_always("k.dtype=i8 k.scale=head");
  EXPECT_EQ(part_of("heads=2 seq=9 dim=5 causal k.dtype=f16 mask=bool:BHQK:all seed=7", codes), "nothing");
  EXPECT_EQ(part_of("heads=2 seq=9 dim=5 causal k.dtype=f16 mask=bool:BHQK:all seed=7", codes, &always),
            "heads=2 seq=9 dim=5 causal k.dtype=i8 k.scale=head seed=7");
  const auto all = [](const Problem&) { return true; };
  const Problem half = with_always("k.dtype=bf16");
  EXPECT_EQ(part_of("seq=9 dim=5 k.dtype=f16", all, &half), "seq=9 dim=5 k.dtype=bf16");
  EXPECT_EQ(part_of("op=linear seq=9 dim=5", codes, &always), "seq=9 dim=5 k.dtype=i8 k.scale=head");
}

/// The correct kernel, for caches of 8 bits with scales alone.
class Codes : public faulty::BackendAround {
 public:
  using BackendAround::BackendAround;
  std::optional<Refusal> refuse(const Call& call) const override {
    const bool stored = type_of(call, TensorId::k) == DType::i8 && type_of(call, TensorId::v) == DType::i8;
    return stored ? BackendAround::refuse(call) : Refusal{"k, v: int8 alone"};
  }
};

TEST(AcceptedPart, AFuzzerMeetsWhatNeedsOptionsIfItIsTold) {
  Codes codes(faulty::make_example());
  FuzzSettings settings;
  settings.seconds = 60;
  settings.count = 60;
  settings.max_operations = 2e5;
  settings.always = {with_always("k.dtype=i8 v.dtype=i8 k.scale=tensor v.scale=tensor"),
                     with_always("k.dtype=i8 v.dtype=i8 k.scale=token v.scale=head")};
  const FuzzResult result = fuzz(codes, settings, [](const FuzzResult&) {});
  EXPECT_EQ(result.refused, 0u);
  EXPECT_EQ(result.failed, 0u);
  EXPECT_GT(result.pass, result.cases / 2);
  EXPECT_GT(result.options.size(), 20u) << "beside those that all have";
  EXPECT_TRUE(result.options.contains("causal"));
}

/// The correct kernel, for f32 without a mask, a window or other operators alone.
class Little : public faulty::BackendAround {
 public:
  using BackendAround::BackendAround;
  std::optional<Refusal> refuse(const Call& call) const override {
    if (const auto other = refuse_other_operators(call)) return other;
    if (call.dtype != DType::f32) return Refusal{"f32 alone"};
    if (call.key_dim % 8 != 0) return Refusal{"dim: whole vectors alone"};
    if (call.mask || call.blocks || call.lengths || call.page_size) return Refusal{"no masks"};
    return BackendAround::refuse(call);
  }
};

TEST(AcceptedPart, AFuzzerOfALittleBackendIsHardlyEverRefused) {
  Little little(faulty::faulty_backends().front().make({1, ""}));
  FuzzSettings settings;
  settings.seconds = 60;
  settings.count = 200;
  settings.seed = 3;
  settings.max_operations = 2e5;
  const FuzzResult result = fuzz(little, settings, [](const FuzzResult&) {});
  EXPECT_LE(result.refused, result.cases / 20);
  EXPECT_EQ(result.failed, 0u);
  EXPECT_GT(result.options.size(), 20u) << "options that it takes are met";
}

}  // namespace
}  // namespace attest
