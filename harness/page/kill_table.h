// The kill table: which suite catches which wrong backend, with which of its cases first. As the file of `attest
// mutants
// --json`, and as a picture.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace attest {

/// What stands in the key "kind" of the file.
inline constexpr const char* kKillTableKind = "mutants";
inline constexpr int kKillTableSchema = 1;

/// A deliberate mistake. Each suite meets it by itself.
struct Mistake {
  std::string name, text;                    ///< text: what is wrong with it
  std::map<std::string, std::size_t> kills;  ///< the case that catches it first, from 1, by suite; others don't
};

/// What a suite did to the mutants that the suites before it left.
struct MutantSuite {
  std::string name;
  std::size_t cases = 0, met = 0;
  std::vector<std::size_t> at;  ///< the case that caught each, from 1, rising
};

struct KillTable {
  std::string attest, commit, cpu, command;
  std::vector<std::string> suites;  ///< that met the mistakes
  std::vector<Mistake> mistakes;
  std::size_t mutants = 0, equivalent = 0;  ///< how many there are, and how many are argued to compute the same
  std::vector<MutantSuite> mutant_suites;
};

nlohmann::ordered_json to_json(const KillTable& table);
/// Throws UserError, in one line that begins with `name`, where `json` is not what to_json gives, or of a newer schema.
KillTable kill_table_from_json(const nlohmann::ordered_json& json, const std::string& name);
/// Throws UserError for what is no such file.
KillTable read_kill_table(const std::filesystem::path& path);

/// Mistakes down, suites that catch any across: the case that catches, or hatching where none does.
std::string kill_table_svg(const KillTable& table);

}  // namespace attest
