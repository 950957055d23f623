#include "tests/mutants/equivalent.h"

#include <fstream>

#include "harness/base/user_error.h"

namespace attest::mutants {

std::map<std::string, std::string> read_equivalents(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw UserError("cannot read " + path.string());
  std::map<std::string, std::string> list;
  std::string mutant;
  int number = 0;
  const auto fail = [&](const std::string& what) {
    throw UserError(path.string() + ":" + std::to_string(number) + ": " + what);
  };
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != ' ') {
      if (!mutant.empty() && list[mutant].empty()) fail("the mutant before has no reason");
      mutant = line;
      if (!list.try_emplace(mutant).second) fail("stands here twice");
      continue;
    }
    if (mutant.empty()) fail("a reason without a mutant");
    list[mutant] += (list[mutant].empty() ? "" : " ") + line.substr(line.find_first_not_of(' '));
  }
  if (!mutant.empty() && list[mutant].empty()) fail("the last mutant has no reason");
  return list;
}

}  // namespace attest::mutants
