#include "harness/verdict/answers.h"

#include <utility>

#include "backends/refusal.h"
#include "harness/base/crash_message.h"
#include "reference/call/launch.h"

namespace attest {

Answers ask(const Backend& backend, const Call& launched) {
  const Call call = planned(launched);
  if (auto refusal = refusal_of(backend, call)) return {std::move(refusal), {}, {}};
  return {std::nullopt, backend.arithmetic(call), backend.conventions()};
}

std::vector<AskedBackend> ask_all(const Case& source, const std::vector<Backend*>& backends) {
  std::vector<AskedBackend> asked;
  for (const Backend* backend : backends) {
    AskedBackend& one = asked.emplace_back(AskedBackend{backend, {}, {}});
    try {
      const CrashContext work(backend->identity().name, source.label);
      one.answers = ask(*backend, source.problem);
    } catch (...) {
      one.thrown = std::current_exception();
    }
  }
  return asked;
}

}  // namespace attest
