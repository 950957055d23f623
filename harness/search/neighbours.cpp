#include "harness/search/neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <set>
#include <sstream>

#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cases/option_values.h"
#include "harness/search/shrink.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest {
namespace {

constexpr std::size_t kShown = 8;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// The words of `line` that `other` lacks.
std::string difference(const std::string& line, const std::string& other) {
  const std::vector<std::string> known = words_of(other);
  std::vector<std::string> own = words_of(line);
  std::erase_if(own,
                [&](const std::string& word) { return std::find(known.begin(), known.end(), word) != known.end(); });
  return join_texts(own, " ");
}

/// In the order in which they are tried.
std::vector<Problem> problems_beside(const Problem& smallest) {
  std::vector<Problem> list;
  const auto add = [&](const Simplification& change) {
    if (std::optional<Problem> beside = simplified(smallest, change)) list.push_back(std::move(*beside));
  };
  add([](Problem& p) { ++p.call.batch; });
  add([](Problem& p) { p.call.query_heads *= 2, p.call.key_heads *= 2; });
  add([](Problem& p) { p.call.query_heads *= 2; });
  add([](Problem& p) { ++p.call.query_length, ++p.call.key_length; });
  add([](Problem& p) { ++p.call.query_length; });
  add([](Problem& p) { ++p.call.key_length; });
  add([](Problem& p) { ++p.call.key_dim, ++p.call.value_dim; });
  for (const Option& option : options()) {
    if (!option.has(smallest.call.op)) continue;
    if (option.key == "dtype") {
      for (const std::string& type : option.samples) {
        if (std::optional<Problem> beside = with_option(smallest, option, type)) list.push_back(std::move(*beside));
      }
    } else if (option.droppable && !option.samples.empty() && !option.is_set(smallest)) {
      const std::optional<std::string> value = plainest_sample(option, smallest);
      if (auto beside = value ? with_option(smallest, option, *value) : std::nullopt) list.push_back(*beside);
    }
  }
  return list;
}

void tell(std::string& text, const char* how, const std::vector<std::string>& cases) {
  if (cases.empty()) return;
  const std::vector<std::string> shown(cases.begin(),
                                       cases.begin() + static_cast<std::ptrdiff_t>(std::min(cases.size(), kShown)));
  text += fmt::format("{}: {}", how, join_texts(shown, ", "));
  if (cases.size() > shown.size()) text += fmt::format(" and {} more", cases.size() - shown.size());
  text += '\n';
}

}  // namespace

std::vector<std::string> options_not_needed(const Problem& failing, const Problem& smallest) {
  std::vector<std::string> names;
  for (const Option& option : options()) {
    if (option.droppable && option.is_set(failing) && !option.is_set(smallest)) names.emplace_back(option.key);
  }
  return names;
}

Neighbours neighbours_of(const Problem& smallest, const std::function<Verdict(const Problem&)>& check,
                         const std::function<bool()>& go_on) {
  Neighbours found;
  const std::string own = print_case(smallest);
  std::set<std::string> seen = {own};
  for (const Problem& beside : problems_beside(smallest)) {
    const std::string line = print_case(beside);
    if (!seen.insert(line).second) continue;
    found.finished = go_on();
    if (!found.finished) break;
    try {
      const Verdict verdict = check(beside);
      if (is_failure(verdict))
        found.failing.push_back(difference(line, own));
      else if (verdict.status == Status::refused)
        found.refused.push_back(difference(line, own));
      else if (is_right(verdict))
        found.right.push_back(difference(line, own));
    } catch (const UserError&) {
      continue;  // data that the type can't hold
    } catch (const std::bad_alloc&) {
      continue;
    }
  }
  return found;
}

std::string text_of(const Neighbours& neighbours) {
  std::string text;
  tell(text, "fails as well with", neighbours.failing);
  tell(text, "right with", neighbours.right);
  tell(text, "refused with", neighbours.refused);
  return text;
}

}  // namespace attest
