// Between the harness and a worker: messages, shared regions, tensors on their way.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "harness/cases/inputs.h"
#include "harness/isolation/arithmetic_json.h"
#include "harness/isolation/messages.h"
#include "harness/isolation/parcels.h"
#include "harness/isolation/shared_memory.h"
#include "reference/case_line.h"

namespace attest {
namespace {

using namespace std::chrono_literals;

class Messages : public testing::Test {
 protected:
  Messages() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  ~Messages() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  int ends_[2];
};

TEST_F(Messages, ArriveInOrderAndWhole) {
  const Json large = {{"text", std::string(100'000, 'x')}};  // more than a socket holds at once
  std::thread sender([&] {
    EXPECT_TRUE(send_message(ends_[0], {{"n", 1}}));
    EXPECT_TRUE(send_message(ends_[0], large));
  });
  Json got;
  EXPECT_EQ(receive_message(ends_[1], got, 10s), Received::message);
  EXPECT_EQ(got, Json({{"n", 1}}));
  EXPECT_EQ(receive_message(ends_[1], got, std::nullopt), Received::message);
  EXPECT_EQ(got, large);
  sender.join();
}

TEST_F(Messages, SayWhenNothingComes) {
  Json got;
  EXPECT_EQ(receive_message(ends_[1], got, 20ms), Received::timeout);
  shutdown(ends_[0], SHUT_RDWR);
  EXPECT_EQ(receive_message(ends_[1], got, 10s), Received::closed);
  EXPECT_FALSE(send_message(ends_[0], {{"n", 1}}));
}

TEST_F(Messages, OfAWorkerThatWritesNonsenseCloseIt) {
  const std::uint64_t absurd = ~std::uint64_t{0};
  ASSERT_EQ(write(ends_[0], &absurd, sizeof absurd), static_cast<ssize_t>(sizeof absurd));
  Json got;
  EXPECT_EQ(receive_message(ends_[1], got, 10s), Received::closed);
  const std::uint64_t three = 3;
  ASSERT_EQ(write(ends_[0], &three, sizeof three), static_cast<ssize_t>(sizeof three));
  ASSERT_EQ(write(ends_[0], "{\"a", 3), 3);
  EXPECT_EQ(receive_message(ends_[1], got, 10s), Received::closed);
}

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
  EXPECT_STREQ(text, "read 0 bytes beyond the end of q");
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

/// Every input arrives with its numbers; what a case doesn't have stays absent.
TEST(Parcels, BringInputsOverUnchanged) {
  for (const char* line :
       {"batch=2 heads=4/2 seq=5x9 dim=8/4 causal align=bottom-right mask=add:BHQK:neginf(0.3) alibi sinks",
        "batch=3 heads=2 seq=4x50 dim=8 lengths=50,17,4 paged=16", "batch=2 seq=7 dim=4 lengths=q:7,3/k:7,3 layout=thd",
        "dtype=f16 seq=33x17 dim=8 blocks=16x8:random(0.5)", "seq=9x14 dim=4 past=5 causal"}) {
    SCOPED_TRACE(line);
    const Problem problem = parse_case(line);
    const CaseInputs made = make_inputs(problem);
    const Inputs sent = made.views();
    const InputParcel parcel(sent, page_size());
    SharedFile file;
    file.reserve(parcel.regions().end());
    parcel.copy_to(file);
    const GuardedArea area(file.descriptor(), regions_from(describe_regions(parcel.regions())), false);
    const UnpackedInputs got(Json::parse(parcel.description().dump()), area);
    for (const auto part : {&Inputs::q, &Inputs::k, &Inputs::v, &Inputs::past_k, &Inputs::past_v}) {
      const ConstTensor &from = sent.*part, &to = got.inputs.*part;
      ASSERT_EQ(from.data == nullptr, to.data == nullptr);
      if (!from.data) continue;
      EXPECT_EQ(from.shape, to.shape);
      EXPECT_EQ(std::memcmp(from.data, to.data, span_bytes(from)), 0);
    }
    EXPECT_EQ(sent.mask.has_value(), got.inputs.mask.has_value());
    EXPECT_EQ(sent.pages.has_value(), got.inputs.pages.has_value());
    EXPECT_EQ(sent.blocks.has_value(), got.inputs.blocks.has_value());
    EXPECT_TRUE(std::equal(sent.slopes.begin(), sent.slopes.end(), got.inputs.slopes.begin(), got.inputs.slopes.end()));
    EXPECT_TRUE(std::equal(sent.sinks.begin(), sent.sinks.end(), got.inputs.sinks.begin(), got.inputs.sinks.end()));
  }
}

TEST(ArithmeticJson, BringsEveryFieldOver) {
  const Arithmetic sent{.accumulator = DType::f64,
                        .stored_weights = DType::bf16,
                        .exp_ulps = 3,
                        .log_ulps = 4,
                        .tanh_ulps = 5,
                        .base2 = true,
                        .scale = ScalePlacement::split_root,
                        .division = Division::opencl_division,
                        .key_block = 7,
                        .lazy_threshold = 8.5,
                        .normalised_before_storage = true,
                        .stored_scores = DType::f16,
                        .score_stores = 9,
                        .sum_of_stored = true,
                        .flush_to_zero = true};
  const Arithmetic usual;
  // All of them by name: with a field more this doesn't compile. A field that stays behind arrives as its default.
  const auto& [accumulator, stored_weights, exp_ulps, log_ulps, tanh_ulps, base2, scale, division, key_block,
               lazy_threshold, normalised_before_storage, stored_scores, score_stores, sum_of_stored, flush_to_zero] =
      sent;
  EXPECT_TRUE(accumulator != usual.accumulator && stored_weights != usual.stored_weights &&
              exp_ulps != usual.exp_ulps && log_ulps != usual.log_ulps && tanh_ulps != usual.tanh_ulps &&
              base2 != usual.base2 && scale != usual.scale && division != usual.division &&
              key_block != usual.key_block && lazy_threshold != usual.lazy_threshold &&
              normalised_before_storage != usual.normalised_before_storage && stored_scores != usual.stored_scores &&
              score_stores != usual.score_stores && sum_of_stored != usual.sum_of_stored &&
              flush_to_zero != usual.flush_to_zero);
  const Json message = sent;
  EXPECT_EQ(message.at("division"), "opencl_division");
  EXPECT_EQ(Json::parse(message.dump()).get<Arithmetic>(), sent);
  Json other = message;
  other["division"] = "by guesswork";
  EXPECT_THROW((void)other.get<Arithmetic>(), std::invalid_argument);
}

}  // namespace
}  // namespace attest
