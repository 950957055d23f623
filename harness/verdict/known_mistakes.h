// Mistakes that kernels are known for, and whether a wrong result is what one of them gives.
//
// Each is the reference with a changed call, changed inputs, or results changed as the mistake changes them. A mistake
// is named only where every checked element lies within the bound of what it gives; where several fit, all are told.
// Backends with such mistakes stand in tests/faulty, and a test holds the one against the other.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/comparison/expectation.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/comparison/worst_element.h"
#include "reference/arithmetic/producer.h"
#include "reference/call/problem.h"

namespace attest {

/// A call with its inputs as a mistaken kernel takes them. Owns what it changes; the rest is the case's own.
struct MistakenCall {
  Call call;
  Inputs inputs;
  std::vector<double> keys{}, values{}, mask{}, slopes{}, sinks{}, dlse{};
  std::vector<std::uint8_t> visible{}, blocks{}, keep{};
  std::vector<std::int32_t> pages{};
};

struct KnownMistake {
  std::string_view name;  ///< for programs: "causal_one_key_more"
  std::string_view text;  ///< completes "the output is what one gets with"
  /// Makes the call the mistaken one. False where it would be no other.
  bool (*change)(MistakenCall&) = nullptr;
  /// Changes what the (mistaken) call gives, bounds with it. False likewise.
  bool (*change_results)(const Call&, ResultValues& values, Bounds& bounds, Bounds& own,
                         const std::vector<RowIndex>& rows) = nullptr;
  /// Whether a backward pass alone may make it: such a pass reads the right pass's o and lse, which calls that are
  /// changed otherwise do not describe.
  bool of_gradients = false;
};

std::span<const KnownMistake> known_mistakes();

/// What the reference expects with this mistake, of the same rows as of the call by itself; without rows where the
/// mistake would change nothing.
Expectation expect_mistaken(const KnownMistake& mistake, const Problem& problem, const Inputs& inputs,
                            const Producer& producer, int threads);

/// The names of the mistakes that give this wrong result, most specific first. `worst`: its worst element.
std::vector<std::string> mistakes_that_give(const Problem& problem, const Inputs& inputs, const Producer& producer,
                                            const GuardedOutputs& outputs, const WorstElement& worst, int threads);

/// The same for many wrong results of one backend, which mostly have one reason: what fitted before is tried first, and
/// the whole table where none of it fits, up to so many times. From one thread at a time.
class MistakeFinder {
 public:
  std::vector<std::string> find(const Problem& problem, const Inputs& inputs, const Producer& producer,
                                const GuardedOutputs& outputs, const WorstElement& worst, int threads);

 private:
  static constexpr int kWholeTable = 64;
  std::vector<std::string> fitted_;
  int whole_ = 0;
};

/// "the output is what one gets with the scale left out"; "" of none.
std::string mistakes_text(const std::vector<std::string>& names);

}  // namespace attest
