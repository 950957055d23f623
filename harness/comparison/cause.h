// Causes of verdicts: what kind of wrong a result is. Programs and tests read the kind, people the text.
#pragma once

#include <cstdint>
#include <string>

#include "backends/backend.h"
#include "harness/base/float_environment.h"
#include "reference/base/names.h"

namespace attest {

/// In the order of the table in harness/VERDICTS.md, which says what each means.
enum class Cause : std::uint8_t {
  none,
  outside_bound,
  not_finite,
  nan_lost,
  infinity_lost,
  beyond_roundings,
  differs_from_file,
  no_known_stage,
  unwritten,
  wrote_outside,
  touched_outside,
  changed_cache,
  changed_after_download,
  rounding_mode_changed,
  flush_to_zero_changed,
  fresh_plan_only,
  counts_on_zeros,
  second_download,
  another_thread,
  more_threads_than_cores,
  run_again,
  other_threads,
  without_batch,
  after_another_case,
  fresh_worker_only,
  among_steps,
  at_the_same_time,
  not_every_time,
  threw,
  crashed,
  lost_device,
  out_of_memory,
  took_too_long,
  ended_by_user,
  refused_without_reason,
  younger_than_contract,
  younger_than_header,
  no_plugin_member,
  no_answer,
  other
};

/// As they stand in files and tables: names are added, never altered.
template <>
inline constexpr auto kNames<Cause> = name_table(
    "", "outside the bound", "NaN or infinity where a number is expected", "visible NaN was lost",
    "an infinity was lost", "further off than roundings explain", "differs from the file's results", "no known stage",
    "output left unwritten", "wrote outside its output", "touched memory outside its tensors",
    "changed the cache beside its new rows", "changed after download had returned", "left the rounding mode changed",
    "left flush-to-zero switched on or off", "right in a fresh plan only", "counts on zeros in its output",
    "second download differs", "wrong in another thread", "wrong with more threads than cores", "wrong when run again",
    "wrong with another number of threads", "wrong without the rest of the batch", "wrong after another case",
    "right in a fresh worker only", "wrong among the steps of several plans", "wrong beside a plan in another thread",
    "not right every time", "threw", "crashed", "lost its device", "out of memory", "took too long", "interrupted",
    "refused without a reason", "younger than its contract", "younger than its attest_plugin.h",
    "not in the plug-in interface", "no answer that can be compared", "other");

/// A cause and what it is about. Failures with the same of both are grouped.
struct FailureCause {
  Cause kind = Cause::none;
  std::string about{};  ///< the output that is wrong, where one can be named; of Cause::other, its whole text

  bool empty() const { return kind == Cause::none; }
  /// "o: outside the bound".
  std::string text() const;
  bool operator==(const FailureCause&) const = default;
};

/// The cause whose text this is; Cause::other, which keeps it, where it is none of this program's.
FailureCause cause_from_text(const std::string& text);

/// Of a step that left this mode changed.
Cause cause_of(FloatMode changed);
/// Of a call that the program refuses on behalf of a backend; none where the backend refuses it.
Cause cause_of(RefusalCause refusal);

/// What is wrong with an output, for programs and for people.
struct OutputFault {
  FailureCause cause{};
  std::string reason{};

  bool empty() const { return cause.empty(); }
};

}  // namespace attest
