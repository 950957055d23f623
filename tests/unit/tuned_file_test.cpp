// The file of `attest tune`.
#include "harness/tuning/tuned_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/tunable_backend.h"

namespace attest {
namespace {

using Chosen = std::vector<std::pair<std::string, std::int64_t>>;

Tuned chosen(std::int64_t wait, double ratio = 0.9) {
  TunableBackend backend;
  backend.tune({wait, 0});
  Tuned tuned = tuned_here(backend, backend.tuning());
  tuned.ratio = ratio;
  tuned.cases = {"seq=4 dim=4"};
  return tuned;
}

void save(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

std::string written(const TunedChoices& choices) {
  std::ostringstream out;
  write_tuned(out, choices);
  return out.str();
}

TEST(TunedFile, GivesBackWhatWasChosenHere) {
  const Folder folder;
  TunedChoices choices;
  choices.put(chosen(500));
  save(folder / "tuned.json", written(choices));
  const TunedChoices read = read_tuned(folder / "tuned.json");
  const TunableBackend backend;
  EXPECT_EQ(read.chosen_for(backend), (Chosen{{"wait", 500}, {"wrong", 0}}));
  ASSERT_EQ(read.all().size(), 1u);
  EXPECT_EQ(read.all()[0].ratio, 0.9);
  EXPECT_EQ(read.all()[0].cases, std::vector<std::string>{"seq=4 dim=4"});
  EXPECT_EQ(written(read), written(choices)) << "and writes the same again";
}

TEST(TunedFile, AChoiceHoldsWhereItWasMade) {
  const TunableBackend backend;
  for (const auto change : std::vector<void (*)(Tuned&)>{
           [](Tuned& t) { t.backend = "another"; }, [](Tuned& t) { t.library = "a library 1.1"; },
           [](Tuned& t) { t.device = "another device"; }, [](Tuned& t) { t.processor = "another processor"; },
           [](Tuned& t) { t.version = 7; }}) {
    Tuned elsewhere = chosen(500);
    change(elsewhere);
    TunedChoices choices;
    choices.put(elsewhere);
    EXPECT_EQ(choices.chosen_for(backend), Chosen{});
    choices.put(chosen(0));
    EXPECT_EQ(choices.all().size(), 2u) << "beside the other one";
    choices.put(chosen(4000));
    EXPECT_EQ(choices.all().size(), 2u) << "in place of the one before";
    EXPECT_EQ(choices.chosen_for(backend), (Chosen{{"wait", 4000}, {"wrong", 0}}));
  }
}

TEST(TunedFile, ABrokenOrForeignOneIsOneLine) {
  const Folder folder;
  const fs::path path = folder / "tuned.json";
  EXPECT_TRUE(read_tuned(path).all().empty()) << "one that is not there holds nothing";
  TunedChoices choices;
  choices.put(chosen(500));
  const std::string whole = written(choices);
  const auto complaint = [&](const std::string& text) {
    save(path, text);
    const std::string message = message_of<UserError>([&] { read_tuned(path); });
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_TRUE(message.starts_with(path.string())) << message;
    return message;
  };
  const auto with = [&](const std::string& piece, const std::string& other) {
    std::string text = whole;
    return text.replace(text.find(piece), piece.size(), other);
  };
  for (const std::string& text : {std::string(), std::string("no JSON"), std::string("[1]"), std::string("{}"),
                                  std::string(R"({"kind":"compare","schema":1})"), whole.substr(0, whole.size() / 2)}) {
    EXPECT_NE(complaint(text), "") << text;
  }
  EXPECT_NE(complaint(with("\"schema\": 1", "\"schema\": 2")), "");
  EXPECT_NE(complaint(with("\"wait\": 500", "\"wait\": \"500\"")), "");
  EXPECT_NE(complaint(with("\"wait\": 500", "\"wait\": 0.5")), "");
  EXPECT_NE(complaint(with("\"device\": \"a device\"", "\"device\": 3")).find("\"device\""), std::string::npos);
  EXPECT_NE(complaint(with("\"device\"", "\"divice\"")).find("\"device\""), std::string::npos);
  EXPECT_NE(complaint(with("\"tuned\": [", "\"tuned\": [3, ")), "");
}

TEST(TunedFile, LiesInTheUsersCache) {
  const Variable named("ATTEST_TUNED", "");
  {
    const Variable cache("XDG_CACHE_HOME", "/somewhere"), home("HOME", "/home/nobody");
    EXPECT_EQ(tuned_file(), "/somewhere/attest/tuned.json");
  }
  const Variable cache("XDG_CACHE_HOME", "");
  {
    const Variable home("HOME", "/home/nobody");
    EXPECT_EQ(tuned_file(), "/home/nobody/.cache/attest/tuned.json");
    EXPECT_EQ(default_tuned_file(), tuned_file());
  }
  const Variable home("HOME", "");
  EXPECT_TRUE(tuned_file().empty());
  EXPECT_NE(message_of<UserError>([] { default_tuned_file(); }).find("--cache"), std::string::npos);
}

}  // namespace
}  // namespace attest
