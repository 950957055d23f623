// Options of the data that a case draws.
#include <algorithm>

#include "reference/options/option_rows.h"

namespace attest::option_rows {
namespace {

Option data_option(std::string key, std::string how, std::string few_words) {
  Option option = composite(std::move(key), std::move(how), std::move(few_words));
  option.files(InFiles::shown).kept();
  return option;
}

}  // namespace

Option fill() {
  Option option = data_option("fill", "name or name(x)", "what stands in q, k and v, or in the parts of a merge");
  option.parse = [](Problem& p, const OptionText& v) { p.data.fill = parse_fill(v, tensor_fills()); };
  option.print = [](const ProblemView& p) -> std::optional<std::string> {
    if (!p.data || p.data->fill == Fill{}) return std::nullopt;
    return fill_text(p.data->fill);
  };
  option.copy = [](Problem& to, const Problem& from) { to.data.fill = from.data.fill; };
  return option.covers([](const Problem& p) { return std::vector<std::string>{"fill=" + p.data.fill.name}; });
}

Option fill_of(TensorId tensor) {
  Option option = data_option(std::string(name_of(tensor)) + ".fill", "name or name(x)", "of this tensor alone");
  option.files(InFiles::unsaid);
  option.parse = [=](Problem& p, const OptionText& v) { p.data.own_fill(tensor) = parse_fill(v, tensor_fills()); };
  option.print = [=](const ProblemView& p) -> std::optional<std::string> {
    if (!p.data) return std::nullopt;
    const auto& own = p.data->own_fill(tensor);
    if (!own) return std::nullopt;
    return fill_text(*own);
  };
  option.copy = [=](Problem& to, const Problem& from) { to.data.own_fill(tensor) = from.data.own_fill(tensor); };
  return option;
}

/// Of an input of linear attention.
Option fill_of_input(std::string key, std::optional<Fill> TestData::*fill) {
  Option option = composite(std::move(key), "uniform|wide", "of this input alone; wide: by magnitude");
  option.files(InFiles::unsaid);
  option.parse = [=](Problem& p, const OptionText& v) {
    p.data.*fill = parse_fill(v, input_fills());
    if (p.data.*fill == Fill{"uniform", {}}) (p.data.*fill).reset();
  };
  option.print = [=](const ProblemView& p) -> std::optional<std::string> {
    if (!p.data || !(p.data->*fill)) return std::nullopt;
    return fill_text(*(p.data->*fill));
  };
  option.copy = [=](Problem& to, const Problem& from) { to.data.*fill = from.data.*fill; };
  return option.tried({"wide"}).often(3);
}

Option poison() {
  static constexpr std::array<std::string_view, 8> kinds = {"hidden:k",  "hidden:v",   "hidden:kv", "visible:k",
                                                            "visible:v", "visible:kv", "hidden:do", "empty:o"};
  Option option =
      data_option("poison", "hidden:kv|visible:k|hidden:do|empty:o|...",
                  "NaN in keys or values that no query, or one, sees, in do of rows that see nothing, or in "
                  "empty parts of a merge");
  option.files(InFiles::unsaid);
  option.parse = [](Problem& p, const OptionText& v) {
    p.data.poison = std::string(kinds[parse_name(v, kinds, "poison")]);
  };
  option.print = [](const ProblemView& p) -> std::optional<std::string> {
    if (!p.data || p.data->poison.empty()) return std::nullopt;
    return p.data->poison;
  };
  option.copy = [](Problem& to, const Problem& from) { to.data.poison = from.data.poison; };
  option.kind = OptionKind::name;
  option.droppable = true;
  return option.tried({"hidden:k", "hidden:v", "hidden:kv", "visible:k", "visible:v", "empty:o"})
      .only(&OperatorTraits::lse);
}

Option seed() {
  Option option = data_option("seed", "n", "of the data and of dropout, 64 bits");
  option.parse = [](Problem& p, const OptionText& v) { p.data.seed = parse_seed(v); };
  option.print = [](const ProblemView& p) -> std::optional<std::string> {
    const std::uint64_t seed = p.data ? p.data->seed : p.call.dropout_seed;
    if (seed == 0) return std::nullopt;
    return std::to_string(seed);
  };
  option.copy = [](Problem& to, const Problem& from) { to.set_seed(from.data.seed); };
  return option;
}

}  // namespace attest::option_rows
