// Parameters of a backend: who gives them, and how what is in use is told.
#include "harness/tuning/parameters.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/user_error.h"
#include "harness/tuning/tuned_file.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/tunable_backend.h"

namespace attest {
namespace {

using Values = std::vector<std::int64_t>;

TEST(Parameters, TellsThoseThatAreNotStandard) {
  TunableBackend backend;
  EXPECT_EQ(parameters_text(backend.tuning()), "");
  EXPECT_EQ(parameters_prefix(identity_of(backend)), "");
  EXPECT_EQ(description(identity_of(backend)), "a library 1.0 on a device");
  backend.tune({0, 1});
  EXPECT_EQ(parameters_text(backend.tuning()), "wait=0 wrong=1");
  EXPECT_EQ(description(identity_of(backend)), "a library 1.0 on a device, wait=0 wrong=1");
  EXPECT_EQ(parameters_prefix(identity_of(backend)), "ATTEST_PARAMETERS='tunable.wait=0 tunable.wrong=1' ");
  EXPECT_EQ(values_of(backend.tuning()), (Values{0, 1}));
  EXPECT_EQ(standard_values(backend.tuning()), (Values{2000, 0}));
}

TEST(Parameters, TheVariableSaysAll) {
  TunableBackend backend;
  backend.tune({4000, 1});
  {
    const Variable set("ATTEST_PARAMETERS", "tunable.wait=500 other.wait=3");
    give_parameters(backend);
    EXPECT_EQ(values_of(backend.tuning()), (Values{500, 0})) << "what it doesn't name is standard";
    // What a result was found with is what repeats it.
    const Variable repeated("ATTEST_PARAMETERS", parameters_variable(identity_of(backend)));
    TunableBackend another;
    give_parameters(another);
    EXPECT_EQ(values_of(another.tuning()), (Values{500, 0}));
  }
  const Variable set("ATTEST_PARAMETERS", "standard");
  give_parameters(backend);
  EXPECT_EQ(values_of(backend.tuning()), (Values{2000, 0}));
}

TEST(Parameters, TheFileCountsWithoutTheVariable) {
  const Folder folder;
  const Variable none("ATTEST_PARAMETERS", ""), cache("ATTEST_TUNED", ""), home("XDG_CACHE_HOME", folder / "cache");
  fs::create_directories(folder / "cache/attest");
  TunableBackend backend;
  give_parameters(backend);
  EXPECT_EQ(values_of(backend.tuning()), (Values{2000, 0})) << "no file, no choice";

  const auto keep = [&](const Values& values) {
    TunableBackend chosen;
    chosen.tune(values);
    TunedChoices choices;
    choices.put(tuned_here(chosen, chosen.tuning()));
    std::ofstream file(folder / "cache/attest/tuned.json");
    write_tuned(file, choices);
  };
  keep({500, 0});
  give_parameters(backend);
  EXPECT_EQ(values_of(backend.tuning()), (Values{500, 0}));
  TunableBackend younger;
  younger.version = 2;
  give_parameters(younger);
  EXPECT_EQ(values_of(younger.tuning()), (Values{2000, 0})) << "a choice for another version of the parameters";

  keep({501, 0});
  const std::string path = (folder / "cache/attest/tuned.json").string();
  EXPECT_EQ(message_of<UserError>([&] { give_parameters(backend); }),
            path + ": tunable: wait can't be 501 on this device; it is one of 0, 500, 2000, 4000");
  const Variable missing("ATTEST_TUNED", (folder / "nowhere.json").string());
  EXPECT_NE(message_of<UserError>([&] { give_parameters(backend); }).find("ATTEST_TUNED"), std::string::npos);
}

TEST(Parameters, AWrongVariableIsOneLine) {
  TunableBackend backend;
  const auto complaint = [&](const char* text) {
    const Variable set("ATTEST_PARAMETERS", text);
    return message_of<UserError>([&] {
      give_parameters(backend);
      check_named_backends({"tunable", "other"});
    });
  };
  for (const char* text : {"wait=3", "tunable.wait", "tunable.wait=", "tunable.wait=x", "tunable.wait=3x",
                           "tunable=wait.3", "standard tunable.wait=0", "tunable.wait=99999999999999999999"}) {
    EXPECT_NE(complaint(text), "") << text;
  }
  EXPECT_EQ(complaint("tunable.wait=3"),
            "ATTEST_PARAMETERS: tunable: wait can't be 3 on this device; it is one of 0, 500, 2000, 4000");
  EXPECT_EQ(complaint("tunable.weight=0"),
            "ATTEST_PARAMETERS: tunable: there is no parameter \"weight\"; the backend has wait, wrong");
  EXPECT_EQ(complaint("tunnable.wait=0"), "ATTEST_PARAMETERS: unknown backend \"tunnable\"; nearest: tunable");
  EXPECT_EQ(values_of(backend.tuning()), (Values{2000, 0})) << "nothing is given by halves";
}

}  // namespace
}  // namespace attest
