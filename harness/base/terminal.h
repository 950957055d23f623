// What only a terminal gets: colours, and one line that tells how far a long command is and redraws itself.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "reference/base/names.h"

namespace attest {

enum class ColorChoice : std::uint8_t { automatic, always, never };

template <>
inline constexpr auto kNames<ColorChoice> = name_table("auto", "always", "never");

/// Automatic: where `stream` is a terminal that can, unless $NO_COLOR is set and not empty (no-color.org).
bool is_colored(std::FILE* stream, ColorChoice choice);

enum class Severity : std::uint8_t { good, bad, doubtful };
/// The text as it is, or between the sequences that colour it. It must be printable already.
std::string colored_text(const std::string& text, Severity severity, bool colored);

/// How far a command is.
struct Progress {
  std::string what;                    ///< is being done now; may be empty
  std::string unit;                    ///< "verdicts", "cases"
  std::size_t done = 0;                ///< of them
  std::size_t wanted = 0;              ///< 0: nobody knows
  std::size_t failed = 0;              ///< of them
  std::optional<double> worst;         ///< the largest error/bound so far
  std::optional<double> seconds_left;  ///< where the command knows better than what is done tells
};

/// "120 of 400 verdicts, 60/s, 5 s left, error/bound up to 0.43, 1 failed: what"
std::string progress_words(const Progress& progress, double seconds);
/// "9 s", "3 min", "2 h 10 min"
std::string duration_words(double seconds);

/// One line on stderr, drawn ten times a second at most; nothing where stderr is no terminal.
class ProgressLine {
 public:
  ProgressLine();
  explicit ProgressLine(bool on) : on_(on) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool on() const { return on_; }
  /// Whether the next draw() would show something: what takes time to be said needs not be said before.
  bool due() const;
  void draw(const Progress& progress);
  /// At once, whatever was drawn last: before a step that takes long.
  void draw_now(const Progress& progress);
  /// Before something else is printed, so that it stands on a line of its own.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  bool on_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_{};
};

}  // namespace attest
