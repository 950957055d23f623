#include "harness/mpi/agreement.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>

namespace attest {
namespace {

using Json = nlohmann::json;

std::string host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

/// Text of a user may be no UTF-8.
std::string packed(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

struct Said {
  std::string host;
  Json what;
};

std::vector<Said> said_by_all(Ranks& ranks, const Json& mine) {
  std::vector<Said> all;
  for (const std::string& bytes : ranks.all(packed({host(), mine}))) {
    const Json json = Json::from_cbor(bytes);
    all.push_back({json.at(0).get<std::string>(), json.at(1)});
  }
  return all;
}

}  // namespace

void take_together(Ranks* ranks, const std::function<void()>& step) {
  if (!ranks) return step();
  Json error;
  try {
    step();
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  const std::vector<Said> all = said_by_all(*ranks, error);
  if (!all.front().what.is_null()) throw CommonError(all.front().what.get<std::string>());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank].what.is_null()) continue;
    throw CommonError(fmt::format("rank {} on {}: {}", rank, all[rank].host, all[rank].what.get<std::string>()));
  }
}

void require_same(Ranks& ranks, const std::map<std::string, std::string>& facts,
                  const std::map<std::string, std::string>& advice) {
  const std::vector<Said> all = said_by_all(ranks, facts);
  const Json& first = all.front().what;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    for (const auto& [name, value] : first.items()) {
      const std::string other = all[rank].what.value(name, "none");
      if (other == value.get<std::string>()) continue;
      const auto what_to_do = advice.find(name);
      throw CommonError(fmt::format("rank {} on {} has other {} than rank 0 on {} ({}, {}){}{}", rank, all[rank].host,
                                    name, all.front().host, other, value.get<std::string>(),
                                    what_to_do == advice.end() ? "" : "; ",
                                    what_to_do == advice.end() ? "" : what_to_do->second));
    }
  }
}

std::map<std::string, std::string> facts_of_all(Ranks& ranks, const std::map<std::string, std::string>& facts) {
  std::map<std::string, std::set<std::string>> values;
  for (const Said& said : said_by_all(ranks, facts)) {
    for (const auto& [name, value] : said.what.items()) values[name].insert(value.get<std::string>());
  }
  std::map<std::string, std::string> together;
  for (const auto& [name, several] : values) {
    std::string& text = together[name];
    for (const std::string& value : several) text += (&value == &*several.begin() ? "" : " / ") + value;
  }
  return together;
}

}  // namespace attest
