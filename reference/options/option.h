// One option of a case line, as a row of a table (options.h): everything that reads, prints, simplifies, draws, stores
// or lists options walks over that table and knows none of them by name. What an option means, and what it can't be
// combined with, is readable code elsewhere in this folder and not here.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/call/problem.h"
#include "reference/call/tensor_table.h"
#include "reference/options/feature.h"
#include "reference/options/option_text.h"

namespace attest {

enum class OptionKind : std::uint8_t {
  flag,              ///< there or not
  integer,           ///< from `min` on
  number,            ///< any finite number in range
  name,              ///< one of a few
  numbers_per_head,  ///< one for each query head; some of these may also stand alone, as a flag
  tensor,            ///< a flag that gives the call one more input
  composite,         ///< anything else: walkers treat it by the text of its value alone
};

/// How the options of a case that lies in a file are known.
enum class InFiles : std::uint8_t {
  said,    ///< the file's metadata say them
  shown,   ///< its tensors show them, and metadata can't
  unsaid,  ///< metadata could, but a file whose tensors are dense has no use for them
};

/// What an option prints itself from: a case, or a call alone.
struct ProblemView {
  ProblemView(const Call& of) : call(of) {}                          // NOLINT(google-explicit-constructor): by design
  ProblemView(const Problem& of) : call(of.call), data(&of.data) {}  // NOLINT(google-explicit-constructor): by design
  operator const Call&() const { return call; }                      // NOLINT(google-explicit-constructor): by design

  const Call& call;
  const TestData* data = nullptr;  ///< of a case
};

struct Option {
  std::string key;
  OptionKind kind = OptionKind::composite;
  std::string value;  ///< how its value is written; empty for what is a flag alone
  std::string about;  ///< in a few words
  bool stands_alone = false;
  std::int64_t min = 0;              ///< of an integer
  std::optional<Axis> at_most;       ///< the size that bounds an integer
  bool droppable = true;             ///< whether a case may be made simpler by leaving it out
  int one_in = 4;                    ///< random cases set it once in so many
  std::vector<std::string> samples;  ///< values worth trying, "" for the flag; the first is the plainest
  std::vector<std::string> choices;  ///< of a name: all of them
  std::size_t default_choice = 0;    ///< the one of a call that doesn't say it
  std::optional<TensorId> input;     ///< of a tensor
  InFiles in_files = InFiles::said;
  int since = 1;  ///< version of the contract that it came with (backends/backend.h); 0: every call has it
  /// The version of the contract that brought the value which a call has; unset, or 0: that of the option.
  std::function<int(const Call&)> value_since{};
  OperatorTrait of = nullptr;  ///< whose operators have it; nullptr: all

  /// Sets it from its value; a flag gets an empty text. Throws CaseError.
  std::function<void(Problem&, const OptionText&)> parse;
  /// Its value as canonical text, "" for the flag; nullopt where it is not printed, which is its default.
  /// Of a call alone, what needs no data.
  std::function<std::optional<std::string>(const ProblemView&)> print;
  /// What a case with it covers: "softcap", "layout=blhd"; by kind where a row says nothing else. Only of what is set.
  std::function<std::vector<std::string>(const Problem&)> classes;
  /// How its values are cut into classes that a suite should meet; by kind where a row says nothing else.
  std::vector<Feature> features;
  /// Features besides those of its kind.
  std::vector<Feature> more_features;
  /// Makes it in `to` what it is in `from`.
  std::function<void(Problem& to, const Problem& from)> copy;

  /// The version of the contract that a backend needs for what the call says here.
  int version_for(const Call& call) const { return value_since ? std::max(since, value_since(call)) : since; }
  bool has(Op op) const { return has_trait(op, of); }
  /// Whether there is another value than the default.
  bool varies() const { return choices.size() != 1; }
  bool takes_value() const { return !value.empty(); }
  bool is_set(const ProblemView& view) const { return print(view).has_value(); }
  void drop(Problem& problem) const { copy(problem, Problem{}); }
  std::vector<std::string> covered(const Problem& problem) const;

  // Said in rows of the table, one after the other.
  Option& values(std::string how, std::string few_words);
  Option& tried(std::initializer_list<const char*> list);
  Option& tried(std::vector<std::string> list);
  Option& only(OperatorTrait trait);
  Option& version(int contract);
  /// Some values came later: the version of the one that a case has.
  Option& grown(std::function<int(const Call&)> version_of_value);
  Option& files(InFiles how);
  Option& up_to(Axis size);
  Option& often(int once_in);
  /// Not left out by itself: it says what the case is about, or is made plainer in ways of its own.
  Option& kept();
  Option& covers(std::function<std::vector<std::string>(const Problem&)> names);
  Option& cut(std::vector<Feature> into);
  Option& also_cut(std::vector<Feature> more);
};

// Rows by kind. `what` names the value in messages.

Option flag_option(std::string key, bool Call::*member);
Option integer_option(std::string key, std::int64_t Call::*member, std::int64_t min, std::string what);
Option integer_option(std::string key, std::optional<std::int64_t> Call::*member, std::int64_t min, std::string what);
/// Set where it is not what a Call begins with. `valid` and what to say otherwise.
Option number_option(std::string key, double Call::*member, bool (*valid)(double), std::string otherwise);
Option number_option(std::string key, std::optional<double> Call::*member, bool (*valid)(double),
                     std::string otherwise);
/// With `alone`, a flag of the same name means numbers that come from elsewhere, and says so in that member.
Option numbers_option(std::string key, std::vector<double> Call::*member, bool Call::*alone, std::string what,
                      bool minus_infinity = false);
Option tensor_option(std::string key, bool Call::*member, TensorId input);

/// One of `names`, in the order of the values of `Value`, which is an enumeration or bool.
template <class Value, std::size_t N>
Option name_option(std::string key, Value Call::*member, const std::array<std::string_view, N>& names,
                   std::string what) {
  Option option;
  option.key = std::move(key);
  option.kind = OptionKind::name;
  option.choices.assign(names.begin(), names.end());
  option.default_choice = static_cast<std::size_t>(Call{}.*member);
  option.parse = [member, names, what](Call& p, const OptionText& v) {
    p.*member = static_cast<Value>(parse_name(v, names, what));
  };
  option.print = [member, names](const Call& p) -> std::optional<std::string> {
    if (p.*member == Call{}.*member) return std::nullopt;
    return std::string(names[static_cast<std::size_t>(p.*member)]);
  };
  option.copy = [member](Call& to, const Call& from) { to.*member = from.*member; };
  return option;
}

}  // namespace attest
