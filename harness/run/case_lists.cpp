#include "harness/run/case_lists.h"

#include <filesystem>
#include <utility>

#include "harness/cases/suites.h"

namespace attest {

std::vector<CaseList> load_cases(const CaseNames& names) {
  std::vector<CaseList> lists;
  for (const std::string& name : names.suites) lists.push_back({name, true, load_suite(find_suite(name))});
  for (const std::string& path : names.suite_files) {
    lists.push_back({std::filesystem::path(path).stem().string(), false, load_case_file(path)});
  }
  if (!names.arguments.empty()) {
    CaseList own;
    for (const std::string& text : names.arguments) own.cases.push_back(case_from_argument(text));
    lists.push_back(std::move(own));
  }
  return lists;
}

}  // namespace attest
