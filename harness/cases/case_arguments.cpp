#include "harness/cases/case_arguments.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace attest {
namespace {

std::set<std::string> keys_of(const std::string& argument) {
  std::set<std::string> keys;
  std::istringstream stream(argument);
  for (std::string token; stream >> token;) keys.insert(token.substr(0, token.find('=')));
  return keys;
}

}  // namespace

std::vector<std::string> joined_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> cases;
  std::set<std::string> met;
  bool open = false;  // the last of them may go on
  for (const std::string& argument : arguments) {
    const bool alone = argument == "-" || argument.ends_with(".safetensors");
    const std::set<std::string> keys = alone ? std::set<std::string>() : keys_of(argument);
    const bool again = std::any_of(keys.begin(), keys.end(), [&](const std::string& key) { return met.contains(key); });
    if (!open || alone || again || keys.empty()) {
      cases.push_back(argument);
      met.clear();
    } else {
      cases.back() += " " + argument;
    }
    open = !alone && !keys.empty();
    met.insert(keys.begin(), keys.end());
  }
  return cases;
}

}  // namespace attest
