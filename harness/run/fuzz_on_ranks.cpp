#include "harness/run/fuzz_on_ranks.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "harness/base/interrupted.h"
#include "harness/cases/case.h"
#include "harness/report/verdict_json.h"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kSoFar = 's', kResult = 'r';
constexpr std::chrono::milliseconds kBetweenWords{200};
/// For the others' results after an interrupt: mpirun ends ranks by force a second after it.
constexpr std::chrono::milliseconds kPatience{400};

std::string packed(char kind, const OrderedJson& json) {
  std::string bytes(1, kind);
  OrderedJson::to_cbor(json, bytes);
  return bytes;
}

OrderedJson to_json(const FuzzResult& result) {
  OrderedJson findings = OrderedJson::array(), pairs = OrderedJson::array();
  for (const Finding& one : result.findings) {
    findings.push_back({{"failure", verdict_to_json(one.failure)},
                        {"small", one.small.source.label},
                        {"verdict", verdict_to_json(one.small.verdict)},
                        {"count", one.count}});
  }
  for (const auto& [pair, count] : result.pairs) pairs.push_back({pair.first, pair.second, count});
  return {{"cases", result.cases},
          {"pass", result.pass},
          {"refused", result.refused},
          {"failed", result.failed},
          {"findings", findings},
          {"inconclusive", result.inconclusive},
          {"options", result.options},
          {"pairs", pairs},
          {"classes", result.classes},
          {"closest", result.closest},
          {"closest_case", result.closest_case}};
}

Verdict verdict_in(const OrderedJson& json) {
  std::optional<Verdict> verdict = verdict_from_json(json);
  if (!verdict) throw std::runtime_error("a rank sent what is no verdict");
  return std::move(*verdict);
}

FuzzResult from_json(const OrderedJson& json) {
  FuzzResult result;
  json.at("cases").get_to(result.cases);
  json.at("pass").get_to(result.pass);
  json.at("refused").get_to(result.refused);
  json.at("inconclusive").get_to(result.inconclusive);
  json.at("failed").get_to(result.failed);
  for (const OrderedJson& one : json.at("findings")) {
    Finding finding;
    finding.failure = verdict_in(one.at("failure"));
    finding.small.source = case_from_line(one.at("small").get<std::string>());
    finding.small.verdict = verdict_in(one.at("verdict"));
    one.at("count").get_to(finding.count);
    result.findings.push_back(std::move(finding));
  }
  json.at("options").get_to(result.options);
  for (const OrderedJson& one : json.at("pairs"))
    result.pairs[{one.at(0).get<std::string>(), one.at(1).get<std::string>()}] = one.at(2).get<std::uint64_t>();
  json.at("classes").get_to(result.classes);
  json.at("closest").get_to(result.closest);
  json.at("closest_case").get_to(result.closest_case);
  return result;
}

/// What the others have said, on rank 0.
class Others {
 public:
  explicit Others(Ranks& ranks) : ranks_(ranks) {}

  /// Takes what has come.
  void listen(std::chrono::microseconds patience) {
    while (const auto message = ranks_.receive(patience)) {
      const OrderedJson json = OrderedJson::from_cbor(message->bytes.begin() + 1, message->bytes.end());
      if (message->bytes.front() == kResult) {
        results_.emplace(message->from, from_json(json));
      } else {
        so_far_[message->from] = json;
      }
      patience = std::chrono::microseconds(0);
    }
  }
  bool are_done() const { return results_.size() + 1 == static_cast<std::size_t>(ranks_.size()); }
  std::map<int, FuzzResult>& results() { return results_; }

  /// What progress tells.
  FuzzResult with(const FuzzResult& own) const {
    FuzzResult all;
    all.cases = own.cases;
    all.failed = own.failed;
    all.closest = own.closest;
    if (!own.findings.empty()) all.findings.push_back(own.findings.front());
    for (const auto& [rank, json] : so_far_) {
      all.cases += json.at("cases").get<std::uint64_t>();
      all.failed += json.at("failed").get<std::uint64_t>();
      all.closest = std::max(all.closest, json.at("closest").get<double>());
    }
    return all;
  }

 private:
  Ranks& ranks_;
  std::map<int, FuzzResult> results_;
  std::map<int, OrderedJson> so_far_;
};

}  // namespace

void add_part(FuzzResult& all, FuzzResult part) {
  all.cases += part.cases;
  all.pass += part.pass;
  all.refused += part.refused;
  all.inconclusive += part.inconclusive;
  all.failed += part.failed;
  for (Finding& finding : part.findings) add_finding(all.findings, std::move(finding));
  all.options.merge(part.options);
  for (const auto& [pair, count] : part.pairs) all.pairs[pair] += count;
  all.classes.merge(part.classes);
  if (part.closest > all.closest) {
    all.closest = part.closest;
    all.closest_case = part.closest_case;
  }
}

SharedFuzz fuzz_on_ranks(Ranks& ranks, Backend& backend, FuzzSettings settings,
                         const std::function<void(const FuzzResult&)>& progress) {
  const auto rank = static_cast<std::uint64_t>(ranks.rank()), size = static_cast<std::uint64_t>(ranks.size());
  settings.part = rank;
  settings.parts = size;
  settings.budget /= static_cast<double>(size);
  const bool nothing = settings.count > 0 && settings.count <= rank;  // fewer cases than ranks
  if (settings.count > 0) settings.count = settings.count / size + (rank < settings.count % size ? 1 : 0);
  SharedFuzz shared;
  if (rank > 0) {
    Clock::time_point last{};
    const auto tell = [&](const FuzzResult& own) {
      if (Clock::now() - last < kBetweenWords) return;
      last = Clock::now();
      ranks.send(0, packed(kSoFar, {{"cases", own.cases}, {"failed", own.failed}, {"closest", own.closest}}));
    };
    if (!nothing) shared.result = fuzz(backend, settings, tell);
    ranks.send(0, packed(kResult, to_json(shared.result)));
    return shared;
  }
  Others others(ranks);
  shared.result = fuzz(backend, settings, [&](const FuzzResult& own) {
    others.listen(std::chrono::microseconds(0));
    progress(others.with(own));
  });
  std::optional<Clock::time_point> since;
  while (!others.are_done() && !(since && Clock::now() - *since > kPatience)) {
    others.listen(std::chrono::milliseconds(10));
    progress(others.with(shared.result));
    if (interrupted && !since) since = Clock::now();
  }
  shared.complete = others.are_done();
  for (auto& [from, part] : others.results()) add_part(shared.result, std::move(part));
  return shared;
}

}  // namespace attest
