#include "harness/cli/list_coverage.h"

#include <fmt/format.h>

#include <map>

#include "harness/cases/coverage.h"
#include "harness/cases/suites.h"

namespace attest {
namespace {

/// What is counted of one kind, and the texts of what isn't met.
struct Tally {
  std::size_t all = 0, met = 0;
  std::map<std::string, std::vector<std::string>> open;        ///< by group
  std::map<std::string, std::vector<std::string>> impossible;  ///< by reason

  void count(bool is_met, const char* reason, const std::string& group, const std::string& text) {
    ++all;
    if (is_met) {
      ++met;
    } else if (reason) {
      impossible[reason].push_back(text);
    } else {
      open[group].push_back(text);
    }
  }
};

std::size_t size_of(const std::map<std::string, std::vector<std::string>>& groups) {
  std::size_t sum = 0;
  for (const auto& [name, texts] : groups) sum += texts.size();
  return sum;
}

/// A few of the texts, and how many more there are.
std::string some_of(const std::vector<std::string>& texts, std::size_t most) {
  std::string line;
  for (std::size_t n = 0; n < texts.size() && n < most; ++n) line += (n > 0 ? ", " : "") + texts[n];
  if (texts.size() > most) line += fmt::format(", {} more", texts.size() - most);
  return line;
}

void print(const char* what, const Tally& tally, std::size_t most) {
  const std::size_t open = size_of(tally.open), impossible = size_of(tally.impossible),
                    possible = tally.all - impossible;
  fmt::print("{}: {} of {} possible met ({:.1f}%), {} not met, {} can't be\n", what, tally.met, possible,
             possible == 0 ? 100.0 : 100.0 * static_cast<double>(tally.met) / static_cast<double>(possible), open,
             impossible);
  for (const auto& [group, texts] : tally.open) fmt::print("  not met   {}: {}\n", group, some_of(texts, most));
  for (const auto& [reason, texts] : tally.impossible) {
    fmt::print("  can't be  {} ({}): {}\n", reason, texts.size(), some_of(texts, 2));
  }
}

}  // namespace

void print_coverage(const std::vector<std::string>& suites, bool pairs) {
  Coverage coverage;
  for (const std::string& suite : suites) {
    for (const Case& one : load_suite(find_suite(suite))) coverage.meet(one.problem);
  }
  const auto& table = classes_of_table();
  fmt::print("{} cases\n", coverage.cases());
  Tally singles;
  for (std::size_t n = 0; n < table.size(); ++n) {
    singles.count(coverage.met(n), why_impossible(n, n), table[n].feature->name, table[n].name());
  }
  print("classes", singles, 100);
  Tally lengths;
  for (std::size_t o = 0; o < options().size(); ++o) {
    const Option& option = options()[o];
    if (!option.varies()) continue;
    for (std::size_t c : length_classes()) {
      lengths.count(coverage.option_met(o, c), why_impossible_option(option, c), option.key, table[c].name());
    }
  }
  print("options x lengths", lengths, 4);
  Tally triples;
  for (const Triple& t : all_triples()) {
    const std::string& visibility = visibilities()[t.visibility].name;
    triples.count(coverage.met(t), why_impossible(t), visibility,
                  table[t.type].name() + " + " + visibility + " + " + table[t.length].name());
  }
  print("types x visibility x lengths", triples, 2);
  if (!pairs) return;
  Tally of_pairs;
  for (const auto& [a, b] : all_pairs()) {
    of_pairs.count(coverage.met(a, b), why_impossible(a, b), table[a].feature->name + " x " + table[b].feature->name,
                   table[a].name() + " + " + table[b].name());
  }
  print("pairs", of_pairs, 2);
}

}  // namespace attest
