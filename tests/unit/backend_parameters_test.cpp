// Every choice of every parameter of the backends here: right, with the bound that its arithmetic states, and taking
// the calls that the standard choice takes.
#include "harness/tuning/parameters.h"
#include "harness/verdict/verdict.h"
#include "tests/unit/helpers.h"
#include "tests/unit/tunable_backend.h"

namespace attest {
namespace {

using Values = std::vector<std::int64_t>;

/// The standard values, and each other choice alone; and all of the largest together.
std::vector<Values> choices_of(const Tuning& tuning) {
  std::vector<Values> all = {standard_values(tuning)};
  Values largest;
  for (std::size_t n = 0; n < tuning.parameters.size(); ++n) {
    for (const std::int64_t choice : tuning.parameters[n].choices) {
      if (choice == all[0][n]) continue;
      all.push_back(all[0]);
      all.back()[n] = choice;
    }
    largest.push_back(tuning.parameters[n].choices.back());
  }
  if (!largest.empty()) all.push_back(largest);
  return all;
}

/// Tiles that end within a block and beside it, masks, doubles.
const std::vector<std::string> kNarrow = {"heads=4/2 seq=50x140 dim=40 causal align=bottom-right out=o,lse",
                                          "heads=2 seq=65x70 dim=16 mask=add:1HQK:normal softcap=20 dropout=0.1",
                                          "heads=2 seq=30x70 dim=16 dtype=f64 mask=bool:11QK:random(0.7)"};
/// Tiles of any choice whole, a single query, and heads that leave a tile little room.
const std::vector<std::string> kWide = {"heads=2 seq=50x1300 dim=40 causal align=bottom-right",
                                        "heads=2 seq=900x130 dim=24/8 align=top-left window=70:5 fill=spread(60)",
                                        "batch=2 heads=8/2 seq=1x700 dim=64 lengths=700,333", "seq=9x40 dim=2048",
                                        "seq=9x40 dim=1024 dtype=f64"};

void check_choices(const std::string& name, const std::vector<std::string>& lines) {
  const Variable none("ATTEST_PARAMETERS", "standard");
  const BackendSet set(registered_backends(), {name}, Context{2, ""});
  Backend& backend = *set.all().front();
  const std::vector<Values> choices = choices_of(backend.tuning());
  for (const std::string& line : lines) {
    const Case source = case_from_line(line);
    backend.tune(choices.front());
    const bool refused = backend.refuse(source.problem).has_value();
    for (const Values& values : choices) {
      backend.tune(values);
      ASSERT_EQ(values_of(backend.tuning()), values);
      const std::string where = name + " " + parameters_text(backend.tuning()) + ": " + line;
      EXPECT_EQ(backend.refuse(source.problem).has_value(), refused) << where;
      if (refused) continue;
      const Verdict verdict = PreparedCase(source, {&backend}, 2).check(backend);
      EXPECT_EQ(verdict.status, Status::pass) << where << ": " << verdict.reason;
      EXPECT_EQ(verdict.repro.starts_with("ATTEST_PARAMETERS="), values != choices.front()) << verdict.repro;
    }
  }
}

class Tunable : public testing::TestWithParam<std::string> {};

TEST_P(Tunable, EveryChoiceIsRight) {
  check_choices(GetParam(), kNarrow);
  check_choices(GetParam(), kWide);
}

std::vector<std::string> tunable_backends() {
  std::vector<std::string> names;
  for (const BackendEntry& entry : registered_backends()) {
    if (!entry.make) continue;
    try {
      if (!entry.make({1, ""})->tuning().parameters.empty()) names.emplace_back(entry.name);
    } catch (const BackendUnavailable&) {
      continue;
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Backends, Tunable, testing::ValuesIn(tunable_backends()),
                         [](const auto& one) { return one.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Tunable);

/// opencl's kernel for GPUs, which a variable makes CPUs run, too; where opencl is here.
class TunableForGpus : public testing::TestWithParam<std::string> {};

TEST_P(TunableForGpus, EveryChoiceIsRight) {
  const Variable kernel("ATTEST_OPENCL_KERNEL", "gpu");
  check_choices(GetParam(), kNarrow);
}

std::vector<std::string> tunable_for_gpus() {
  std::vector<std::string> names = tunable_backends();
  std::erase_if(names, [](const std::string& name) { return name != "opencl"; });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Backends, TunableForGpus, testing::ValuesIn(tunable_for_gpus()),
                         [](const auto& one) { return one.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TunableForGpus);

TEST(TilesThatAreChosen, ChangeTheBoundAsTheyChangeTheRounding) {
  for (const std::string& name : tunable_backends()) {
    const Variable none("ATTEST_PARAMETERS", "standard");
    const BackendSet set(registered_backends(), {name}, Context{1, ""});
    Backend& backend = *set.all().front();
    Tuning tuning = backend.tuning();
    for (Parameter& p : tuning.parameters) {
      if (p.name != "key_tile") continue;
      p.value = p.choices.front();
      backend.tune(values_of(tuning));
      EXPECT_EQ(backend.arithmetic(parse_case("seq=9x4000 dim=8")).key_block, p.choices.front()) << name;
    }
  }
}

}  // namespace
}  // namespace attest
