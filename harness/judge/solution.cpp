#include "harness/judge/solution.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "harness/base/text.h"
#include "harness/judge/submission_files.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using AnyJson = nlohmann::json;

constexpr std::uintmax_t kMostBytesOfSolution = std::uintmax_t{4} << 20;
constexpr std::size_t kMostSources = 1000;

AnyJson json_in(const fs::path& file) {
  std::error_code error;
  if (fs::file_size(file, error) > kMostBytesOfSolution || error) return AnyJson::value_t::discarded;
  std::ifstream stream(file);
  return AnyJson::parse(stream, nullptr, /*allow_exceptions=*/false);
}

bool says_solution(const AnyJson& json) {
  return json.is_object() && json.contains("spec") && json["spec"].is_object() && json.contains("sources") &&
         json["sources"].is_array();
}

std::string text_of(const AnyJson& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string())
    throw InvalidSubmission(std::string("the solution says no ") + key);
  return object[key].get<std::string>();
}

/// A path that stays in the folder.
fs::path inner_path(const std::string& text) {
  const fs::path path(text);
  const bool leaves = std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
  if (text.empty() || path.is_absolute() || leaves || !path.has_filename() || text != printable_line(text))
    throw InvalidSubmission("\"" + printable_line(text) + "\" is no path of a source");
  return path.lexically_normal();
}

bool is_identifier(const std::string& word) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto fits_behind = [&](char c) { return fits(c) || (c >= '0' && c <= '9'); };
  return !word.empty() && fits(word[0]) && std::all_of(word.begin(), word.end(), fits_behind);
}

}  // namespace

bool is_solution(const fs::path& file) { return file.extension() == ".json" && says_solution(json_in(file)); }

Solution read_solution(const fs::path& file) {
  const AnyJson json = json_in(file);
  if (!says_solution(json))
    throw InvalidSubmission("it is no solution of FlashInfer-Bench: spec and sources are wanted");
  const AnyJson& spec = json["spec"];
  const std::string language = text_of(spec, "language"), entry = text_of(spec, "entry_point");
  if (language != "python")
    throw InvalidSubmission("solutions in Python are judged, and its language is " + printable_line(language));
  Solution solution;
  const std::size_t colons = entry.find("::");
  solution.function = colons == std::string::npos ? "" : entry.substr(colons + 2);
  if (!is_identifier(solution.function))
    throw InvalidSubmission("its entry point \"" + printable_line(entry) + "\" is no FILE::FUNCTION");
  solution.main = inner_path(entry.substr(0, colons));
  if (spec.contains("destination_passing_style")) {
    if (!spec["destination_passing_style"].is_boolean())
      throw InvalidSubmission("destination_passing_style is neither true nor false");
    solution.into = spec["destination_passing_style"].get<bool>();
  }
  std::set<fs::path> names;
  for (const AnyJson& source : json["sources"]) {
    const fs::path path = inner_path(text_of(source, "path"));
    if (!names.insert(path).second) throw InvalidSubmission("it has " + path.string() + " twice");
    solution.sources.emplace_back(path, text_of(source, "content"));
    if (names.size() > kMostSources) throw InvalidSubmission("it has too many sources");
  }
  if (!names.contains(solution.main) || solution.main.extension() != ".py")
    throw InvalidSubmission(solution.main.string() + " is none of its sources in Python");
  return solution;
}

void write_sources(const Solution& solution, const fs::path& folder) {
  for (const auto& [path, content] : solution.sources) {
    std::error_code error;
    fs::create_directories((folder / path).parent_path(), error);
    std::ofstream file(folder / path, std::ios::binary);
    file << content;
    file.close();
    if (error || !file) throw InvalidSubmission("its source " + path.string() + " can't be written");
  }
}

}  // namespace attest
