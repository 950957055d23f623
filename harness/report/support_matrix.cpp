#include "harness/report/support_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "harness/cases/case.h"
#include "reference/call/call.h"
#include "reference/options/option.h"
#include "reference/options/options.h"

namespace attest {
namespace {

constexpr const char* kNoOption = "no option";

/// Of these the value is what an implementation supports or not, up to a colon.
bool counts_by_value(const std::string& key) {
  return key == "op" || key == "pass" || key == "mask" || key == "layout" || key == "align" || key == "rope" ||
         key.ends_with(".dtype") || key.ends_with(".scale");
}

bool is_data(const std::string& key) { return key == "seed" || key == "poison" || key.ends_with("fill"); }

/// What the sizes of a call ask for.
std::string word_of_size(const std::string& key, const std::string& value) {
  if (key == "heads" && value.find('/') != std::string::npos) return "grouped heads";
  if (key == "seq" && value.find('x') != std::string::npos) return "Lq != Lk";
  if (key == "dim" && value.find('/') != std::string::npos) return "Dqk != Dv";
  return "";
}

std::string word_of(const std::string& token) {
  const std::size_t equals = token.find('=');
  const std::string key = token.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : token.substr(equals + 1);
  if (key == "dtype" || is_data(key)) return "";
  if (key == "heads" || key == "seq" || key == "dim" || key == "batch") return word_of_size(key, value);
  if (key.ends_with(".strides") || key.ends_with(".offset")) return "strides";
  if (key == "out") return value == "o" ? "" : "out=" + value;
  return counts_by_value(key) ? key + "=" + value.substr(0, value.find(':')) : key;
}

/// "out=o,lse" is a row for lse.
std::vector<std::string> split_outputs(const std::string& word) {
  std::vector<std::string> words;
  std::istringstream names(word.substr(4));
  for (std::string name; std::getline(names, name, ',');) {
    if (name != "o") words.push_back("out=" + name);
  }
  return words;
}

}  // namespace

std::vector<std::string> options_used(const std::string& case_line) {
  std::vector<std::string> words;
  std::istringstream tokens(case_from_line(case_line, "a verdict").label);
  for (std::string token; tokens >> token;) {
    const std::string word = word_of(token);
    if (word.empty()) continue;
    const std::vector<std::string> all = word.starts_with("out=") ? split_outputs(word) : std::vector{word};
    for (const std::string& one : all) {
      if (std::find(words.begin(), words.end(), one) == words.end()) words.push_back(one);
    }
  }
  if (words.empty()) words.emplace_back(kNoOption);
  return words;
}

std::string SupportMatrix::Counted::text() const {
  const std::size_t all = right + wrong + refused + unproven;
  if (wrong > 0) return fmt::format("wrong {} of {}", wrong, all);
  if (right > 0 && refused > 0) return fmt::format("right {}, refused {}", right, refused);
  if (right > 0) return fmt::format("right {}", right);
  if (refused > 0) return fmt::format("refused {}", refused);
  return all > 0 ? fmt::format("unproven {}", unproven) : "";
}

void SupportMatrix::add(const Verdict& verdict) {
  if (verdict.case_line.ends_with(".safetensors")) {
    ++left_out_;
    return;
  }
  ++verdicts_;
  const std::string type(name_of(case_from_line(verdict.case_line, "a verdict").problem.call.dtype));
  for (const std::string& option : options_used(verdict.case_line)) {
    if (!cells_.contains(option)) rows_.push_back(option);
    Counted& cell = cells_[option][type];
    if (is_failure(verdict)) {
      ++cell.wrong;
    } else if (verdict.status == Status::refused) {
      ++cell.refused;
    } else if (is_right(verdict) && verdict.status != Status::weak) {
      ++cell.right;
    } else {
      ++cell.unproven;
    }
  }
}

Table SupportMatrix::table() const {
  std::vector<Table::Column> columns = {{"option"}};
  std::vector<std::string> types;
  for (const char* type : {"f64", "f32", "f16", "bf16"}) {
    const bool met =
        std::any_of(cells_.begin(), cells_.end(), [&](const auto& row) { return row.second.contains(type); });
    if (!met) continue;
    types.emplace_back(type);
    columns.push_back({type});
  }
  Table table(columns);
  std::vector<std::string> rows = rows_;
  const auto place = [](const std::string& row) {  // in the order of the case language
    if (row == kNoOption) return -1;
    const std::string key = row == "grouped heads" ? "heads"
                            : row == "Lq != Lk"    ? "seq"
                            : row == "Dqk != Dv"   ? "dim"
                                                   : row.substr(0, row.find('='));
    const auto all = options();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Option& option) { return option.key == key; });
    return static_cast<int>(found - all.begin());
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const std::string& a, const std::string& b) {
    return std::pair(place(a), a) < std::pair(place(b), b);
  });
  for (const std::string& row : rows) {
    std::vector<std::string> cells = {row};
    for (const std::string& type : types) {
      const auto& of_row = cells_.at(row);
      const auto found = of_row.find(type);
      cells.push_back(found == of_row.end() ? "" : found->second.text());
    }
    table.add(std::move(cells));
  }
  return table;
}

}  // namespace attest
