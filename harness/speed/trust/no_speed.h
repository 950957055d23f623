// Why a plan has no speed. Programs and tests read the kind, people the text.
#pragma once

#include <cstdint>
#include <string>

#include "reference/base/names.h"

namespace attest {

enum class NoSpeed : std::uint8_t {
  none,
  refused,               ///< alone of all no failure of the backend
  wrong_result,          ///< in the check before the timing: outside its bound, or written where it must not be
  wrong_while_timed,     ///< right before the timing
  earlier_result,        ///< run gave the result of inputs that it had before
  suspect,               ///< further off than roundings explain
  unproven,              ///< what was checked is inconclusive
  threw,                 ///< in any step
  crashed,               ///< its process ended
  out_of_memory,         ///< its process took more than it might, or asked for more than there was
  timeout,               ///< a step took too long
  float_mode_changed,    ///< it left rounding or flush-to-zero otherwise than it found them
  changes_inputs,        ///< which are for reading
  uses_reference,        ///< it asks attest's own reference
  result_before_run,     ///< the result was there before run, from upload or download
  result_after_run,      ///< the result was not complete when run returned, or changed after it
  threads_after_run,     ///< its threads still compute when run has returned
  first_download_works,  ///< the first download after a run takes longer than others
  download_works,        ///< every download takes longer than copying explains
  upload_works,          ///< upload takes longer than copying explains
  above_roof,            ///< faster than its device can be
  cached,                ///< new inputs take longer than the same again
  more_threads,          ///< than it was given
  ended_by_user,         ///< before its first sample
  unreported,            ///< Google Benchmark told of no sample
};

/// As they stand in files, by the table in results/SCHEMA.md: names are added, never altered.
template <>
inline constexpr auto kNames<NoSpeed> = name_table("", "refused", "wrong_result", "wrong_while_timed", "earlier_result",
                                                   "suspect", "unproven", "threw", "crashed", "out_of_memory",
                                                   "timeout", "float_mode_changed", "changes_inputs", "uses_reference",
                                                   "result_before_run", "result_after_run", "threads_after_run",
                                                   "first_download_works", "download_works", "upload_works",
                                                   "above_roof", "cached", "more_threads", "ended_by_user",
                                                   "unreported");

struct NoSpeedReason {
  NoSpeed kind = NoSpeed::none;
  std::string text{};

  bool empty() const { return kind == NoSpeed::none; }
  /// The same of one case among several.
  NoSpeedReason on(const std::string& case_line) const { return {kind, case_line + ": " + text}; }
};

}  // namespace attest
