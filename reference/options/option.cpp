#include "reference/options/option.h"

#include <utility>

namespace attest {
namespace {

template <class T>
Option option_of(std::string key, OptionKind kind, T Call::*member) {
  Option option;
  option.key = std::move(key);
  option.kind = kind;
  option.copy = [member](Call& to, const Call& from) { to.*member = from.*member; };
  return option;
}

template <class T>
Option integer_of(std::string key, T Call::*member, std::int64_t min, std::string what) {
  Option option = option_of(std::move(key), OptionKind::integer, member);
  option.min = min;
  option.parse = [member, min, what = std::move(what)](Call& p, const OptionText& v) {
    p.*member = parse_integer(v, min, what);
  };
  return option;
}

template <class T>
Option number_of(std::string key, T Call::*member, bool (*valid)(double), std::string otherwise) {
  Option option = option_of(key, OptionKind::number, member);
  option.parse = [member, valid, key = std::move(key), otherwise = std::move(otherwise)](Call& p, const OptionText& v) {
    const double number = parse_number(v, key);
    if (!valid(number)) v.fail(otherwise);
    p.*member = number;
  };
  return option;
}

}  // namespace

Option& Option::values(std::string how, std::string few_words) {
  value = std::move(how);
  about = std::move(few_words);
  return *this;
}

Option& Option::tried(std::initializer_list<const char*> list) {
  samples.assign(list.begin(), list.end());
  return *this;
}

Option& Option::tried(std::vector<std::string> list) {
  samples = std::move(list);
  return *this;
}

Option& Option::only(OperatorTrait trait) {
  of = trait;
  return *this;
}

Option& Option::version(int contract) {
  since = contract;
  return *this;
}

Option& Option::grown(std::function<int(const Call&)> version_of_value) {
  value_since = std::move(version_of_value);
  return *this;
}

Option& Option::files(InFiles how) {
  in_files = how;
  return *this;
}

Option& Option::up_to(Axis size) {
  at_most = size;
  return *this;
}

Option& Option::often(int once_in) {
  one_in = once_in;
  return *this;
}

Option& Option::kept() {
  droppable = false;
  return *this;
}

Option& Option::covers(std::function<std::vector<std::string>(const Problem&)> names) {
  classes = std::move(names);
  return *this;
}

Option& Option::cut(std::vector<Feature> into) {
  features = std::move(into);
  return *this;
}

Option& Option::also_cut(std::vector<Feature> more) {
  more_features = std::move(more);
  return *this;
}

std::vector<std::string> Option::covered(const Problem& problem) const {
  const std::optional<std::string> text = print(problem);
  if (!text) return {};
  if (classes) return classes(problem);
  return {kind == OptionKind::name ? key + "=" + *text : key};
}

Option flag_option(std::string key, bool Call::*member) {
  Option option = option_of(std::move(key), OptionKind::flag, member);
  option.stands_alone = true;
  option.samples = {""};
  option.parse = [member](Call& p, const OptionText&) { p.*member = true; };
  option.print = [member](const Call& p) { return p.*member ? std::optional<std::string>("") : std::nullopt; };
  return option;
}

Option integer_option(std::string key, std::int64_t Call::*member, std::int64_t min, std::string what) {
  Option option = integer_of(std::move(key), member, min, std::move(what));
  option.print = [member](const Call& p) -> std::optional<std::string> {
    if (p.*member == Call{}.*member) return std::nullopt;
    return integer_text(p.*member);
  };
  return option;
}

Option integer_option(std::string key, std::optional<std::int64_t> Call::*member, std::int64_t min, std::string what) {
  Option option = integer_of(std::move(key), member, min, std::move(what));
  option.print = [member](const Call& p) -> std::optional<std::string> {
    if (!(p.*member)) return std::nullopt;
    return integer_text(*(p.*member));
  };
  return option;
}

Option number_option(std::string key, double Call::*member, bool (*valid)(double), std::string otherwise) {
  Option option = number_of(std::move(key), member, valid, std::move(otherwise));
  option.print = [member](const Call& p) -> std::optional<std::string> {
    if (p.*member == Call{}.*member) return std::nullopt;
    return print_number(p.*member);
  };
  return option;
}

Option number_option(std::string key, std::optional<double> Call::*member, bool (*valid)(double),
                     std::string otherwise) {
  Option option = number_of(std::move(key), member, valid, std::move(otherwise));
  option.print = [member](const Call& p) -> std::optional<std::string> {
    if (!(p.*member)) return std::nullopt;
    return print_number(*(p.*member));
  };
  return option;
}

Option numbers_option(std::string key, std::vector<double> Call::*member, bool Call::*alone, std::string what,
                      bool minus_infinity) {
  Option option = option_of(std::move(key), OptionKind::numbers_per_head, member);
  option.stands_alone = alone != nullptr;
  option.parse = [member, alone, minus_infinity, what = std::move(what)](Call& p, const OptionText& v) {
    if (alone) p.*alone = true;
    if (!v.text.empty()) p.*member = parse_numbers(v, what, minus_infinity);
  };
  option.print = [member, alone](const Call& p) -> std::optional<std::string> {
    if (alone ? !(p.*alone) : (p.*member).empty()) return std::nullopt;
    return joined(p.*member, print_number);
  };
  option.copy = [member, alone](Call& to, const Call& from) {
    to.*member = from.*member;
    if (alone) to.*alone = from.*alone;
  };
  return option;
}

Option tensor_option(std::string key, bool Call::*member, TensorId input) {
  Option option = flag_option(std::move(key), member);
  option.kind = OptionKind::tensor;
  option.input = input;
  return option;
}

}  // namespace attest
