// The cases of a run, by where they were named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/cases/case.h"
#include "harness/run/selection.h"

namespace attest {

struct CaseNames {
  std::vector<std::string> suites;       ///< names of committed suites
  std::vector<std::string> suite_files;  ///< paths of anyone's
  std::vector<std::string> arguments;    ///< case lines and .safetensors files; "-": lines from standard input
  std::string share{};                   ///< as Share reads it: of each suite and file, so much is taken
  std::uint64_t seed = 0;                ///< of generated suites, and of the share
};

struct CaseList {
  std::string suite;       ///< empty for arguments
  bool committed = false;  ///< a file found by name: its refusals are compared with the lists
  std::vector<Case> cases;
  std::filesystem::path path{};  ///< of the file of case lines; empty for arguments
  std::size_t of_cases = 0;      ///< of which `cases` are a share; 0 where they are all
};

/// Loaded in the order suites, files of suites, arguments; empty when nothing is named. Throws UserError, also where
/// standard input, which ends, is named twice.
std::vector<CaseList> load_cases(const CaseNames& names);

/// Of all cases in their order, files by their contents: the same on every machine.
std::string fingerprint_of(const std::vector<CaseList>& lists, const std::string& filter = "");

/// Of all cases, list by list, those that are of the shard.
std::vector<bool> own_cases(const Shard& shard, const std::vector<CaseList>& lists);

}  // namespace attest
