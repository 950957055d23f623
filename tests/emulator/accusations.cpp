#include "tests/emulator/accusations.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "harness/backends/isolation/arithmetic_json.h"
#include "harness/cases/case.h"
#include "harness/probe/probe.h"
#include "harness/verdict/prepared_case.h"

namespace attest::emulator {
namespace {

std::string who(const Emulated& e) {
  return fmt::format("{} {}{} seed {}", name_of(e.behaviour), text_of(e.does), e.clamped_exp ? " clamped" : "", e.seed);
}

}  // namespace

Accusations accuse(const Emulated& emulated, const std::string& line, bool probe) {
  EmulatorBackend backend(emulated);
  const Case source = case_from_line(line);
  const Verdict verdict = PreparedCase(source, {&backend}, 1).check(backend);
  Accusations found{std::string(name_of(verdict.status)), {}};
  const bool adversary = emulated.behaviour != Behaviour::random;
  if (verdict.status == Status::fail || (verdict.status == Status::suspect && !adversary)) {
    found.list.push_back(fmt::format("{}: {}\n    {}\n    {}", found.status, verdict.reason, line, who(emulated)));
  }
  if (probe && emulated.behaviour != Behaviour::limit) {
    for (std::string& sentence : accused_by_probes(emulated)) found.list.push_back(std::move(sentence));
  }
  return found;
}

Emulated emulated_from(const std::string& text) {
  const std::size_t open = text.find('{'), close = text.rfind('}'), seed = text.rfind(" seed ");
  const auto behaviour =
      open == std::string::npos || open == 0 ? std::nullopt : value_named<Behaviour>(text.substr(0, open - 1));
  if (!behaviour || close == std::string::npos || seed == std::string::npos)
    throw std::invalid_argument("no declaration: " + text);
  Emulated emulated;
  emulated.does = emulated.says = nlohmann::json::parse(text.substr(open, close + 1 - open)).get<Arithmetic>();
  emulated.behaviour = *behaviour;
  emulated.clamped_exp = text.find(" clamped", close) != std::string::npos;
  emulated.seed = std::stoull(text.substr(seed + 6));
  return emulated;
}

std::vector<std::string> accused_by_probes(const Emulated& emulated) {
  EmulatorBackend backend(emulated);
  std::vector<std::string> list;
  for (const ProbedStatement& statement : probe_arithmetic(backend)) {
    if (statement.holds) continue;
    list.push_back(fmt::format("probe: {}: declares {}, shows {}\n    {}", statement.name, statement.stated,
                               statement.observed, who(emulated)));
  }
  return list;
}

}  // namespace attest::emulator
