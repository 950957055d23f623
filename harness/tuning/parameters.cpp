#include "harness/tuning/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>

#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/tuning/tuned_file.h"
#include "reference/base/nearest.h"

namespace attest {
namespace {

constexpr const char* kVariable = "ATTEST_PARAMETERS";

/// One word of the variable: backend.name=value.
struct Word {
  std::string text, backend, name;
  std::int64_t value = 0;
};

Word word_of(const std::string& text) {
  Word word{text, {}, {}};
  const std::size_t dot = text.find('.'), equals = text.find('=');
  const auto fail = [&]() {
    throw UserError(fmt::format("{}: \"{}\" is no backend.parameter=number, nor is all of it \"standard\"", kVariable,
                                printable_line(text)));
  };
  if (dot == std::string::npos || equals == std::string::npos || equals < dot) fail();
  word.backend = text.substr(0, dot);
  word.name = text.substr(dot + 1, equals - dot - 1);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, word.value);
  if (error != std::errc() || stop != end) fail();
  return word;
}

/// Nothing where the variable is not set, or empty.
std::optional<std::vector<Word>> words_of_variable() {
  const char* text = std::getenv(kVariable);
  if (!text || !*text) return std::nullopt;
  std::vector<Word> words;
  if (text == std::string_view("standard")) return words;
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) words.push_back(word_of(word));
  return words;
}

/// Sets the value of one parameter; `where` says who wants it.
void choose(Tuning& tuning, const std::string& name, std::int64_t value, const std::string& where) {
  std::vector<std::string> names;
  for (Parameter& p : tuning.parameters) {
    names.push_back(p.name);
    if (p.name != name) continue;
    if (std::find(p.choices.begin(), p.choices.end(), value) == p.choices.end()) {
      throw UserError(fmt::format("{}: {} can't be {} on this device; it is one of {}", where, printable_line(name),
                                  value, choices_text(p, ", ")));
    }
    p.value = value;
    return;
  }
  throw UserError(fmt::format("{}: there is no parameter \"{}\"; {}", where, printable_line(name),
                              names.empty() ? "the backend has none" : "the backend has " + join_texts(names, ", ")));
}

}  // namespace

std::string parameters_text(const Tuning& tuning) {
  std::vector<std::string> words;
  for (const Parameter& p : tuning.parameters) {
    if (p.value != p.standard) words.push_back(fmt::format("{}={}", p.name, p.value));
  }
  return join_texts(words, " ");
}

std::string choices_text(const Parameter& parameter, std::string_view between) {
  std::vector<std::string> texts;
  for (const std::int64_t choice : parameter.choices) texts.push_back(std::to_string(choice));
  return join_texts(texts, between);
}

std::vector<std::int64_t> values_of(const Tuning& tuning) {
  std::vector<std::int64_t> values;
  for (const Parameter& p : tuning.parameters) values.push_back(p.value);
  return values;
}

std::vector<std::int64_t> standard_values(const Tuning& tuning) {
  std::vector<std::int64_t> values;
  for (const Parameter& p : tuning.parameters) values.push_back(p.standard);
  return values;
}

Identity identity_of(const Backend& backend) {
  Identity identity = backend.identity();
  identity.parameters = parameters_text(backend.tuning());
  return identity;
}

std::string parameters_variable(const Identity& identity) {
  std::vector<std::string> words;
  std::istringstream stream(identity.parameters);
  for (std::string word; stream >> word;) words.push_back(identity.name + "." + word);
  return join_texts(words, " ");
}

std::string parameters_prefix(const Identity& identity) {
  if (identity.parameters.empty()) return "";
  return fmt::format("{}={} ", kVariable, shell_quoted(parameters_variable(identity)));
}

void give_parameters(Backend& backend) {
  Tuning tuning = backend.tuning();
  const std::string name = backend.identity().name;
  const auto words = words_of_variable();
  if (words) {
    for (Parameter& p : tuning.parameters) p.value = p.standard;
    for (const Word& word : *words) {
      if (word.backend == name) choose(tuning, word.name, word.value, fmt::format("{}: {}", kVariable, name));
    }
  } else {
    if (tuning.parameters.empty()) return;
    const std::filesystem::path path = tuned_file();
    if (path.empty()) return;
    const std::string where = fmt::format("{}: {}", path.string(), name);
    for (const auto& [parameter, value] : read_tuned(path).chosen_for(backend)) choose(tuning, parameter, value, where);
  }
  if (!tuning.parameters.empty()) backend.tune(values_of(tuning));
}

void check_named_backends(const std::vector<std::string>& known) {
  for (const Word& word : words_of_variable().value_or(std::vector<Word>{})) {
    if (std::find(known.begin(), known.end(), word.backend) != known.end()) continue;
    throw UserError(fmt::format("{}: unknown backend \"{}\"; nearest: {}", kVariable, printable_line(word.backend),
                                nearest_name(word.backend, known)));
  }
}

}  // namespace attest
