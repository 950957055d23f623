#include "reference/options/case_line.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "reference/call/tensor_place.h"
#include "reference/options/find_fault.h"
#include "reference/options/option_text.h"
#include "reference/options/options.h"

namespace attest {
namespace {

/// Every key, flags first, each list in alphabetical order: ties between nearest names go to the first.
std::vector<std::string> known_keys() {
  std::vector<std::string> flags, keys;
  for (const Option& option : options()) {
    if (option.stands_alone) flags.push_back(option.key);
    if (option.takes_value()) keys.push_back(option.key);
  }
  std::sort(flags.begin(), flags.end());
  std::sort(keys.begin(), keys.end());
  flags.insert(flags.end(), keys.begin(), keys.end());
  return flags;
}

class Parser {
 public:
  explicit Parser(Problem start) : problem_(std::move(start)) {}

  Problem parse(std::string_view line, bool sizes_given) {
    sizes_given_ = sizes_given;
    for (std::size_t at = 0; at < line.size();) {
      if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
        ++at;
        continue;
      }
      const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
      parse_token(line.substr(at, end - at), at + 1);
      at = end;
    }
    finish(line);
    return std::move(problem_);
  }

 private:
  void parse_token(std::string_view token, std::size_t column) {
    const std::size_t equals = token.find('=');
    const std::string name(token.substr(0, equals));
    const Option* option = find_option(name);
    if (!option) {
      throw CaseError(column, "unknown key " + quoted(name) + "; " + said_here(name, known_keys()));
    }
    if (!columns_.emplace(name, column).second) throw CaseError(column, name + " is given twice");
    if (sizes_given_ && option->in_files == InFiles::shown) {
      throw CaseError(column, name + " comes from the tensors and can't be set here");
    }
    if (equals == std::string_view::npos) {
      if (!option->stands_alone) throw CaseError(column, name + " needs a value: " + name + "=...");
      option->parse(problem_, {"", column});
      return;
    }
    const OptionText value{token.substr(equals + 1), column + equals + 1};
    if (!option->takes_value()) throw CaseError(column, name + " is a flag and takes no value");
    if (value.text.empty()) value.fail(name + " needs a value");
    option->parse(problem_, value);
  }

  void finish(std::string_view line) {
    const auto column_of = [&](const std::string& key) {
      const auto found = columns_.find(key);
      return found == columns_.end() ? line.size() + 1 : found->second;
    };
    if (!sizes_given_) {
      for (const char* key : {"seq", "dim"}) {
        if (!columns_.contains(key)) {
          throw CaseError(line.size() + 1, std::string(key) + " is missing; a case needs at least seq= and dim=");
        }
      }
    }
    Problem& p = problem_;
    if (p.call.past > 0 && columns_.contains("align")) {
      throw CaseError(column_of("align"), "align and past exclude each other: past sets the diagonal");
    }
    if (p.call.query_length != p.call.key_length && p.call.uses_diagonal() && !columns_.contains("align") &&
        p.call.past == 0 && !columns_.contains("past")) {
      const std::string user = p.call.causal ? "causal" : columns_.contains("window") ? "window" : "alibi";
      throw CaseError(column_of(user), user + " with Lq != Lk needs align=top-left or align=bottom-right");
    }
    if (columns_.contains("mask.dtype") && (!p.call.mask || !p.call.mask->additive)) {
      throw CaseError(column_of("mask.dtype"), "mask.dtype belongs to an additive mask (mask=add:...)");
    }
    if (columns_.contains("pass") && !columns_.contains("out")) p.call.outputs = default_outputs(p.call.pass);
    p.set_seed(p.data.seed);
    drop_defaults();
    if (auto fault = find_fault(p)) throw CaseError(column_of(fault->key), fault->key + ": " + fault->message);
  }

  /// Values that repeat the default are the default: equal problems print equal lines.
  void drop_defaults() {
    Problem& p = problem_;
    for (TensorId id : values_of<TensorId>()) {
      TensorSpec& spec = p.call.tensor(id);
      if (spec.layout == p.call.layout) spec.layout.reset();
      if (spec.dtype == default_type_of(p, id)) spec.dtype.reset();
      if (spec.strides) {
        const Index4 given = *spec.strides;
        spec.strides.reset();
        if (place_of(p, id).strides != given) spec.strides = given;
      }
    }
    for (std::optional<Fill>& own : p.data.own_fills) {
      if (own == p.data.fill) own.reset();
    }
    if (p.call.scale && *p.call.scale == 1.0 / std::sqrt(static_cast<double>(p.call.key_dim))) p.call.scale.reset();
  }

  Problem problem_;
  bool sizes_given_ = false;
  std::map<std::string, std::size_t> columns_;
};

std::string line_of(const ProblemView& view) {
  std::string line;
  for (const Option& option : options()) {
    const std::string token = token_of(option, view);
    if (!token.empty()) line += (line.empty() ? "" : " ") + token;
  }
  return line;
}

}  // namespace

Problem parse_case(std::string_view line) { return Parser(Problem{}).parse(line, false); }

Problem with_options(const Problem& sizes, std::string_view tokens) { return Parser(sizes).parse(tokens, true); }

std::optional<Problem> canonical(const Problem& problem) {
  if (find_fault(problem)) return std::nullopt;
  try {
    return parse_case(print_case(problem));
  } catch (const CaseError&) {
    return std::nullopt;
  }
}

std::string print_case(const Problem& problem) { return line_of(problem); }

std::string print_call(const Call& call) { return line_of(call); }

}  // namespace attest
