// The parameters that clblast gives CLBlast: whole, such as its kernels allow, and in use for the plans made under
// them.
#ifdef ATTEST_HAS_CLBLAST
#include "backends/clblast/gemm_kernel.h"

#include <set>
#include <string>
#include <utility>

#include "backends/registry.h"
#include "backends/support/opencl/device.h"
#include "reference/options/case_line.h"
#include "tests/unit/helpers.h"
#include "tests/unit/tunable_backend.h"

namespace attest {
namespace {

using Values = std::unordered_map<std::string, std::size_t>;

cl_device_id device_in_use() {
  support::OpenClDevice device("");
  return device.queue().getInfo<CL_QUEUE_DEVICE>()();
}

Values values_of(cl_device_id device, const std::string& kernel, clblast::Precision precision) {
  Values values;
  EXPECT_EQ(clblast::RetrieveParameters(device, kernel, precision, values), clblast::StatusCode::kSuccess);
  return values;
}

std::set<std::string> names_of(const Values& values) {
  std::set<std::string> names;
  for (const auto& [name, value] : values) names.insert(name);
  return names;
}

/// Every combination of choices but CLBlast's own.
std::vector<GemmKernel> all_kernels() {
  const std::vector<Parameter> p = GemmKernel().parameters();
  std::vector<GemmKernel> kernels;
  for (const std::int64_t tile : p[0].choices) {
    for (const std::int64_t rows : p[1].choices) {
      if (tile != 0) kernels.emplace_back().set({tile, rows});
    }
  }
  return kernels;
}

/// What CLBlast's tuner asks of a kernel with tiles in registers: src/tuning/kernels/xgemm.hpp.
TEST(GemmKernel, EveryChoiceIsOneThatCLBlastAllows) {
  for (const GemmKernel& kernel : all_kernels()) {
    for (const std::size_t lanes : {1, 2, 4, 8, 16}) {
      Values v = kernel.xgemm_parameters(lanes);
      EXPECT_EQ(v["GEMMK"], 1u);
      EXPECT_EQ(v["MWG"] % (v["MDIMC"] * v["VWM"]), 0u) << lanes;
      EXPECT_EQ(v["NWG"] % (v["NDIMC"] * v["VWN"]), 0u) << lanes;
      EXPECT_EQ(v["KREG"] % v["VWN"], 0u);
      EXPECT_EQ(v["MDIMA"], v["MDIMC"]);
      EXPECT_EQ(v["NDIMB"], v["NDIMC"]);
      // What it asks of none, and batched products need: MWG and NWG are mixed up, and no k is filled up for vectors.
      EXPECT_EQ(v["MWG"], v["NWG"]);
      EXPECT_EQ(static_cast<std::size_t>(kGemmDepth) % (v["KREG"] * v["VWM"]), 0u) << lanes;
    }
  }
}

TEST(GemmKernel, IsGivenToCLBlastAndTakenBack) {
  const cl_device_id device = device_in_use();
  const auto f32 = clblast::Precision::kSingle, f64 = clblast::Precision::kDouble;
  use_gemm_kernel(device, f32, {});
  const Values before = values_of(device, "Xgemm", f32), routine = values_of(device, "GemmRoutine", f32);
  const Values other = values_of(device, "Xgemm", f64);
  GemmKernel tiled;
  tiled.tile = 16;
  use_gemm_kernel(device, f32, tiled);
  Values now = values_of(device, "Xgemm", f32);
  EXPECT_EQ(now["MWG"], 16u);
  EXPECT_EQ(now["NDIMC"], 4u);
  EXPECT_EQ(names_of(now), names_of(before));
  EXPECT_EQ(values_of(device, "GemmRoutine", f32)["XGEMM_MIN_INDIRECT_SIZE"], 0u);
  EXPECT_EQ(values_of(device, "Xgemm", f64), other);
  use_gemm_kernel(device, f32, {});
  EXPECT_EQ(values_of(device, "Xgemm", f32), before);
  EXPECT_EQ(values_of(device, "GemmRoutine", f32), routine);
}

/// `attest tune` runs plans of several choices in turn, and CLBlast has one set of parameters a process.
TEST(GemmKernel, APlanKeepsTheOneThatItWasMadeUnder) {
  const Variable none("ATTEST_PARAMETERS", "standard");
  const BackendSet set(registered_backends(), {"clblast"}, Context{2, ""});
  Backend& backend = *set.all().front();
  const Computed one("seq=3x5 dim=4");
  const auto plan_under = [&](std::int64_t tile) {
    backend.tune({tile, 4});
    auto plan = backend.prepare(one.problem);
    plan->upload(one.inputs.views());
    return plan;
  };
  const auto own = plan_under(0), tiled = plan_under(16);
  const auto least_after = [&](Plan& plan) {
    plan.run();
    return values_of(device_in_use(), "GemmRoutine", clblast::Precision::kSingle)["XGEMM_MIN_INDIRECT_SIZE"];
  };
  EXPECT_NE(least_after(*own), 0u);
  EXPECT_EQ(least_after(*tiled), 0u);
  EXPECT_NE(least_after(*own), 0u);
}

/// The smallest batch that clblast refuses, and why. Nothing is allocated.
std::pair<std::int64_t, std::string> first_refused(const std::string& line) {
  const BackendSet set(registered_backends(), {"clblast"}, Context{1, ""});
  std::string reason;
  std::int64_t taken = 0, refused = std::int64_t{1} << 36;
  while (refused - taken > 1) {
    const std::int64_t batch = taken + (refused - taken) / 2;
    const auto refusal = set.all().front()->refuse(parse_case("batch=" + std::to_string(batch) + " " + line));
    if (refusal) reason = refusal->reason;
    (refusal ? refused : taken) = batch;
  }
  return {refused, reason};
}

/// A head of one key takes little room, but is filled up to whole steps of a product.
TEST(ClblastRefusals, NameTheBufferThatManyShortHeadsMakeTooLarge) {
  const std::string reason = first_refused("seq=1 dim=1").second;
  EXPECT_EQ(reason.rfind("the buffer of keys needs ", 0), 0u) << reason;
}

/// Gradients multiply along rows of queries and features of values, too.
TEST(ClblastRefusals, CountWhatGradientsFillUp) {
  const auto [batch, reason] = first_refused("pass=backward seq=1 dim=1/17");
  EXPECT_EQ(reason.rfind("the buffer of values needs ", 0), 0u) << reason;
  EXPECT_GT(first_refused("seq=1 dim=1/17").first, batch);
  EXPECT_GT(first_refused("heads=17/1 seq=1x16 dim=1").first,
            first_refused("pass=backward heads=17/1 seq=1x16 dim=1").first);
}

}  // namespace
}  // namespace attest
#endif
