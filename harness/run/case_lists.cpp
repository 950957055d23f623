#include "harness/run/case_lists.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <utility>

#include "harness/base/fingerprint.h"
#include "harness/base/user_error.h"
#include "harness/cases/case_arguments.h"
#include "harness/cases/case_cost.h"
#include "harness/cases/suites.h"

namespace attest {

namespace {
constexpr const char* kStandardInput = "-";

void leave_share(const Share& share, std::uint64_t seed, CaseList& list) {
  if (share.is_all()) return;
  std::vector<std::string> lines;
  for (const Case& one : list.cases) lines.push_back(one.from_file ? one.content : one.label);
  const std::vector<bool> own = share.cases_of(lines, seed);
  std::vector<Case> left;
  for (std::size_t n = 0; n < own.size(); ++n) {
    if (own[n]) left.push_back(std::move(list.cases[n]));
  }
  list.of_cases = list.cases.size();
  list.cases = std::move(left);
}

}  // namespace

std::vector<CaseList> load_cases(const CaseNames& names) {
  std::vector<CaseList> lists;
  const Share share(names.share);
  for (const std::string& name : names.suites) {
    const Suite suite = find_suite(name);
    lists.push_back({name, !suite.generated, load_suite(suite, names.seed), suite.path});
  }
  for (const std::string& path : names.suite_files) {
    lists.push_back({std::filesystem::path(path).stem().string(), false, load_case_file(path), path});
  }
  for (CaseList& list : lists) leave_share(share, names.seed, list);
  if (!share.is_all() && lists.empty()) throw UserError("--share is of suites: name one with --suite or --suite-file");
  if (std::count(names.arguments.begin(), names.arguments.end(), kStandardInput) > 1) {
    throw UserError("\"-\" stands for standard input, which can be read once");
  }
  if (!names.arguments.empty()) {
    CaseList own;
    for (const std::string& text : joined_arguments(names.arguments)) {
      if (text != kStandardInput) {
        own.cases.push_back(case_from_argument(text));
        continue;
      }
      for (Case& one : load_case_lines(std::cin, "standard input", {})) {
        one.line = 0;  // of no file that anyone could open
        own.cases.push_back(std::move(one));
      }
    }
    lists.push_back(std::move(own));
  }
  return lists;
}

std::string fingerprint_of(const std::vector<CaseList>& lists, const std::string& filter) {
  Fingerprint selected;
  selected.add(filter + '\n');
  for (const CaseList& list : lists) {
    for (const Case& source : list.cases) {
      // A file's name may have been another folder's on another machine.
      selected.add(list.suite + '\n' + (source.from_file ? source.content : source.label) + '\n');
    }
  }
  return selected.text();
}

std::vector<bool> own_cases(const Shard& shard, const std::vector<CaseList>& lists) {
  std::vector<double> costs;
  for (const CaseList& list : lists) {
    for (const Case& source : list.cases) costs.push_back(cost_of(source.problem));
  }
  return shard.cases_of(costs);
}

}  // namespace attest
