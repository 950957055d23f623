#include "harness/base/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "harness/base/launcher.h"
#include "harness/base/text.h"

namespace attest {
namespace {

constexpr std::chrono::milliseconds kBetweenDraws{100};
constexpr std::size_t kUsualColumns = 80;
constexpr double kTellsARate = 0.1;  ///< seconds

bool is_capable_terminal(std::FILE* stream) {
  const char* kind = std::getenv("TERM");
  return is_shown_on_terminal(fileno(stream)) && !(kind && std::string_view(kind) == "dumb");
}

std::size_t columns_of_stderr() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

/// As many characters of UTF-8 as a line has columns: a line that wraps can't be drawn over.
std::string shortened_to(const std::string& text, std::size_t columns) {
  std::size_t characters = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) continue;
    if (characters++ == columns) return text.substr(0, at);
  }
  return text;
}

}  // namespace

bool is_colored(std::FILE* stream, ColorChoice choice) {
  if (choice != ColorChoice::automatic) return choice == ColorChoice::always;
  const char* none = std::getenv("NO_COLOR");
  return is_capable_terminal(stream) && !(none && *none);
}

std::string colored_text(const std::string& text, Severity severity, bool colored) {
  if (!colored) return text;
  const char* code = severity == Severity::good ? "32" : severity == Severity::bad ? "1;31" : "33";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string duration_words(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(std::clamp(seconds, 0.0, 1e9)));
  if (whole < 100) return fmt::format("{} s", whole);
  const long long minutes = (whole + 59) / 60;
  return minutes < 100 ? fmt::format("{} min", minutes) : fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

std::string progress_words(const Progress& p, double seconds) {
  std::string words = fmt::format("{}{} {}", p.done, p.wanted > 0 ? fmt::format(" of {}", p.wanted) : "", p.unit);
  const double rate = seconds >= kTellsARate ? static_cast<double>(p.done) / seconds : 0;
  if (rate > 0) words += rate >= 1 ? fmt::format(", {:.0f}/s", rate) : fmt::format(", {:.0f} s each", 1 / rate);
  std::optional<double> left = p.seconds_left;
  if (!left && rate > 0 && p.wanted > p.done) left = static_cast<double>(p.wanted - p.done) / rate;
  if (left) words += ", " + duration_words(*left) + " left";
  if (p.worst) words += fmt::format(", error/bound up to {:.3g}", *p.worst);
  if (p.failed > 0) words += fmt::format(", {} failed", p.failed);
  if (!p.what.empty()) words += ": " + printable_line(p.what);
  return words;
}

ProgressLine::ProgressLine() : ProgressLine(is_capable_terminal(stderr)) {}

bool ProgressLine::due() const { return on_ && Clock::now() - last_ >= kBetweenDraws; }

void ProgressLine::draw(const Progress& progress) {
  if (due()) draw_now(progress);
}

void ProgressLine::draw_now(const Progress& progress) {
  if (!on_) return;
  last_ = Clock::now();
  const double seconds = std::chrono::duration<double>(last_ - start_).count();
  const std::string line = shortened_to(progress_words(progress, seconds), columns_of_stderr() - 1);
  fmt::print(stderr, "\r{}\x1b[K", line);
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressLine::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace attest
