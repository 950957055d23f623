// Tensors on their way to a worker.
#include "harness/backends/isolation/serialized_inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "harness/cases/inputs.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

/// Inputs as they arrive at a worker.
struct Arrived {
  explicit Arrived(const Inputs& sent) {
    const SerializedInputs serialized(sent, page_size());
    file.reserve(serialized.regions().end());
    serialized.copy_to(file);
    area.emplace(file.descriptor(), regions_from(describe_regions(serialized.regions())), false);
    unpacked.emplace(Json::parse(serialized.description().dump()), *area);
  }
  SharedFile file;
  std::optional<GuardedArea> area;
  std::optional<UnpackedInputs> unpacked;
};

/// Every input arrives with its numbers; what a case doesn't have stays absent.
TEST(SerializedInputs, BringInputsOverUnchanged) {
  for (const char* line :
       {"batch=2 heads=4/2 seq=5x9 dim=8/4 causal align=bottom-right mask=add:BHQK:neginf(0.3) alibi sinks",
        "batch=3 heads=2 seq=4x50 dim=8 lengths=50,17,4 paged=16", "batch=2 seq=7 dim=4 lengths=q:7,3/k:7,3 layout=thd",
        "dtype=f16 seq=33x17 dim=8 blocks=16x8:random(0.5)", "seq=9x14 dim=4 past=5 causal"}) {
    SCOPED_TRACE(line);
    const Problem problem = parse_case(line);
    const CaseInputs made = make_inputs(problem);
    const Inputs sent = made.views();
    const Arrived arrived(sent);
    const Inputs& got = arrived.unpacked->inputs;
    for (const TensorRow& row : tensor_rows()) {
      if (is_output(row.id)) continue;
      const ConstTensor &from = sent.at(row.id), &to = got.at(row.id);
      ASSERT_EQ(sent.has(row.id), got.has(row.id)) << row.name;
      if (!sent.has(row.id)) continue;
      EXPECT_EQ(from.shape, to.shape) << row.name;
      EXPECT_EQ(from.dtype, to.dtype) << row.name;
      EXPECT_EQ(std::memcmp(from.data, to.data, span_bytes(from)), 0) << row.name;
    }
  }
}

TEST(SerializedInputs, OneMemoryForTwoTensorsStaysOne) {
  const CaseInputs made = make_inputs(parse_case("seq=5x7 dim=4"));
  for (const bool shared : {false, true}) {
    Inputs sent = made.views();
    if (shared) sent.set(TensorId::v, sent.k());
    const Arrived arrived(sent);
    const Inputs& got = arrived.unpacked->inputs;
    EXPECT_EQ(got.k().data == got.v().data, shared);
    EXPECT_NE(got.q().data, got.k().data);
    EXPECT_EQ(std::memcmp(got.v().data, sent.v().data, span_bytes(sent.v())), 0);
  }
}

}  // namespace
}  // namespace attest
