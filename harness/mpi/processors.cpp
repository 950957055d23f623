#include "harness/mpi/processors.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace attest {
namespace {

std::vector<int> own_processors() {
  std::vector<int> numbers;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return numbers;
  for (int n = 0; n < CPU_SETSIZE; ++n) {
    if (CPU_ISSET(static_cast<std::size_t>(n), &set)) numbers.push_back(n);
  }
  return numbers;
}

const char* plural(std::size_t count) { return count == 1 ? "" : "s"; }

}  // namespace

std::vector<RankPlace> places_of_ranks(Ranks& ranks, int threads) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const nlohmann::json mine = {std::string(host.data()), own_processors(), threads};
  std::vector<RankPlace> places;
  for (const std::string& text : ranks.all(mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))) {
    const nlohmann::json json = nlohmann::json::parse(text);
    places.push_back({json.at(0).get<std::string>(), json.at(1).get<std::vector<int>>(), json.at(2).get<int>()});
  }
  return places;
}

int fair_threads(const std::vector<RankPlace>& places, int rank) {
  const RankPlace& own = places.at(static_cast<std::size_t>(rank));
  const auto sharers = std::count_if(places.begin(), places.end(), [&](const RankPlace& other) {
    return other.host == own.host && other.processors == own.processors;
  });
  return std::max(1, static_cast<int>(own.processors.size()) / static_cast<int>(sharers));
}

std::optional<std::string> oversubscription(const std::vector<RankPlace>& places) {
  struct Host {
    std::set<int> processors;
    std::size_t threads = 0, ranks = 0;
  };
  std::map<std::string, Host> hosts;
  for (const RankPlace& place : places) {
    Host& host = hosts[place.host];
    host.processors.insert(place.processors.begin(), place.processors.end());
    host.threads += static_cast<std::size_t>(place.threads);
    ++host.ranks;
  }
  for (const auto& [name, host] : hosts) {
    if (host.threads <= host.processors.size()) continue;
    return fmt::format("{} rank{} on {} {} {} threads on {} processor{}", host.ranks, plural(host.ranks), name,
                       host.ranks == 1 ? "has" : "have", host.threads, host.processors.size(),
                       plural(host.processors.size()));
  }
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const RankPlace& place = places[rank];
    if (static_cast<std::size_t>(place.threads) <= place.processors.size()) continue;
    return fmt::format(
        "rank {} on {} has {} threads and is bound to {} processor{}, which mpirun --bind-to none changes", rank,
        place.host, place.threads, place.processors.size(), plural(place.processors.size()));
  }
  return std::nullopt;
}

}  // namespace attest
