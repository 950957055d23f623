#include "harness/judge/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>

#include "harness/base/data_folder.h"
#include "harness/base/fingerprint.h"
#include "harness/base/user_error.h"
#include "harness/cases/case.h"
#include "harness/judge/board_problem.h"

namespace attest {
namespace {

constexpr std::uint64_t kWays = 6;  ///< to draw from a range: one of them gives an end, two the edge of a tile
constexpr std::int64_t kSmallestTile = 8;
constexpr int kTiles = 6;    ///< each twice as large as the one before
constexpr int kTrials = 20;  ///< of a pattern, when a file is read

std::string without_blanks(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

double number_of_text(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) throw UserError("\"" + text + "\" is no number");
  return value;
}

/// A multiple of a tile within the range, or the number before or behind it; nothing where the drawn tile has none.
std::optional<std::int64_t> edge_of_tile(std::int64_t low, std::int64_t high, std::mt19937_64& random) {
  const std::int64_t tile = kSmallestTile << random() % kTiles;
  const std::int64_t first = (std::max<std::int64_t>(low, 1) + tile - 1) / tile, last = high / tile;
  if (first > last) return std::nullopt;
  const std::int64_t multiple =
      first + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(last - first + 1));
  const std::int64_t beside = static_cast<std::int64_t>(random() % 3) - 1;
  return std::clamp(tile * multiple + beside, low, high);
}

std::string drawn_number(const std::string& low_text, const std::string& high_text, std::mt19937_64& random) {
  const double low = number_of_text(low_text), high = number_of_text(high_text);
  if (!(low <= high) || low < 0) throw UserError("the range " + low_text + ".." + high_text + " is empty");
  const std::uint64_t way = random();
  if (way % kWays == 0) return (way / kWays) % 2 == 0 ? low_text : high_text;
  const bool whole = (low_text + high_text).find('.') == std::string::npos;
  if (whole && way % kWays <= 2) {
    const auto edge = edge_of_tile(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high), random);
    if (edge) return std::to_string(*edge);
  }
  const double share = std::uniform_real_distribution<double>(0, 1)(random);
  const double from = whole ? low + 1 : low, to = whole ? high + 2 : high;  // 0 has a place among powers, too
  const double value = from > 0 ? from * std::pow(to / from, share) : share * to;
  if (!whole) return fmt::format("{:.6g}", value);
  return fmt::format("{}", static_cast<std::int64_t>(std::clamp(std::floor(value) - 1, low, high)));
}

/// With numbers in the place of ranges.
std::string without_ranges(const std::string& value, std::mt19937_64& random) {
  const std::size_t dots = value.find("..");
  if (dots == std::string::npos) return value;
  const auto part_of_number = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  std::size_t first = dots, last = dots + 2;
  while (first > 0 && part_of_number(value[first - 1])) --first;
  while (last < value.size() && part_of_number(value[last]) && value.compare(last, 2, "..") != 0) ++last;
  const std::string number =
      drawn_number(value.substr(first, dots - first), value.substr(dots + 2, last - dots - 2), random);
  return value.substr(0, first) + number + without_ranges(value.substr(last), random);
}

std::string one_alternative(const std::string& alternatives, std::mt19937_64& random) {
  std::vector<std::string> list;
  std::istringstream stream(alternatives);
  for (std::string one; std::getline(stream, one, '|');) list.push_back(one);
  return list.at(random() % list.size());
}

void read_task_line(Task& task, const std::string& line) {
  std::istringstream words(line);
  std::string word, number, pattern;
  words >> word;
  if (word == "about") {
    std::getline(words, task.about);
    task.about = without_blanks(task.about);
    return;
  }
  if (word == "may") {
    words >> pattern;
    if (pattern != "refuse") throw UserError("may: \"refuse\" is wanted");
    task.may_refuse = true;
    return;
  }
  if (word == "call") {
    std::getline(words, pattern);
    task.call = without_blanks(pattern);
    if (task.call.empty()) throw UserError("call: the name of a function or a class is wanted");
    return;
  }
  if (word == "declare") {
    while (words >> pattern) task.permitted.permit(pattern);
    if (pattern.empty()) throw UserError("declare: what may be stated is wanted, as stored_weights=bf16");
    return;
  }
  if (word != "draw" && word != "time")
    throw UserError("\"" + word + "\": about, draw, time, may, call or declare is wanted");
  words >> number;
  std::getline(words, pattern);
  pattern = without_blanks(pattern);
  const double value = number_of_text(number);
  if (!(value > 0)) throw UserError(word + ": " + number + " is not above 0");
  std::mt19937_64 random(0);
  for (int n = 0; n < kTrials; ++n) (void)case_from_line(drawn_line(pattern, random));
  if (word == "draw")
    task.drawn.push_back({static_cast<int>(value), pattern});
  else
    task.timed.push_back({value, pattern});
}

}  // namespace

std::string drawn_line(const std::string& pattern, std::mt19937_64& random) {
  std::istringstream words(pattern);
  std::string line;
  for (std::string word; words >> word;) {
    const std::size_t sign = word.find('=');
    const std::string key = sign == std::string::npos ? "" : word.substr(0, sign + 1);
    const std::string value = one_alternative(word.substr(key.size()), random);
    if (value == "-") continue;
    line += (line.empty() ? "" : " ") + key + without_ranges(value, random);
  }
  return line;
}

Task read_task(const std::string& name_or_path, const std::string& interpreter) {
  std::filesystem::path path = name_or_path;
  if (!path.has_extension() && !path.has_parent_path()) path = required_data_folder("tasks") / (name_or_path + ".task");
  std::ifstream file(path);
  if (!file) throw UserError("--task " + name_or_path + ": there is no such file, nor a task of attest with this name");
  Task task;
  task.name = name_of_task(path);
  std::istringstream made;
  if (is_board_problem(path)) {
    made.str(task_of_problem(path, interpreter));
    Fingerprint of_text;
    of_text.add(made.str());
    task.content = of_text.text();
  } else {
    task.content = fingerprint_of(path);
  }
  std::istream& lines = is_board_problem(path) ? static_cast<std::istream&>(made) : file;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = without_blanks(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    try {
      read_task_line(task, line);
    } catch (const std::exception& error) {
      throw UserError(fmt::format("{}:{}: {}", path.filename().string(), number, error.what()));
    }
  }
  if (task.drawn.empty())
    throw UserError(path.filename().string() + ": nothing is drawn: a line \"draw N CASE\" is wanted");
  return task;
}

}  // namespace attest
