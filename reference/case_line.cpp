#include "reference/case_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "reference/find_fault.h"
#include "reference/nearest.h"
#include "reference/tensor_place.h"

namespace attest {
namespace {

using Text = std::string_view;
using Names = std::vector<Text>;

std::string quoted(Text text) { return "\"" + std::string(text) + "\""; }

/// The value of one token, with the column at which it starts.
struct Value {
  Text text;
  std::size_t column = 1;

  [[noreturn]] void fail(const std::string& message) const { throw CaseError(column, message); }

  /// Parts between separators; each knows its own column. No separator: one part.
  std::vector<Value> split(char separator) const {
    std::vector<Value> parts;
    std::size_t begin = 0;
    for (std::size_t at = 0; at <= text.size(); ++at) {
      if (at == text.size() || text[at] == separator) {
        parts.push_back({text.substr(begin, at - begin), column + begin});
        begin = at + 1;
      }
    }
    return parts;
  }
};

std::int64_t parse_integer(const Value& value, std::int64_t least, const std::string& what) {
  std::int64_t number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error == std::errc::result_out_of_range) value.fail(quoted(value.text) + " is too large for " + what);
  if (error != std::errc() || stop != end) value.fail(quoted(value.text) + " is not " + what);
  if (number < least) {
    value.fail(what + " must be at least " + std::to_string(least) + ", not " + std::to_string(number));
  }
  return number;
}

double parse_number(const Value& value, const std::string& what) {
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc() || stop != end || !std::isfinite(number)) {
    value.fail(quoted(value.text) + " is not a finite number for " + what);
  }
  return number;
}

std::vector<std::int64_t> parse_list(const Value& value, const std::string& what) {
  std::vector<std::int64_t> list;
  for (const Value& part : value.split(',')) list.push_back(parse_integer(part, 0, what));
  return list;
}

std::vector<double> parse_numbers(const Value& value, const std::string& what) {
  std::vector<double> list;
  for (const Value& part : value.split(',')) list.push_back(parse_number(part, what));
  return list;
}

/// Which of `names` the value is.
template <class Array>
std::size_t parse_choice(const Value& value, const Array& names, const std::string& what) {
  const auto found = std::find(names.begin(), names.end(), value.text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  value.fail(quoted(value.text) + " is no " + what + "; nearest: " + nearest_name(value.text, names));
}

template <NamedEnum E>
E parse_name(const Value& value, const std::string& what) {
  return values_of<E>()[parse_choice(value, kNames<E>, what)];
}

Fill parse_fill(const Value& value, const std::vector<FillName>& known) {
  const std::size_t open = value.text.find('(');
  const Text name = value.text.substr(0, open);
  Names names;
  for (const FillName& fill : known) names.push_back(fill.name);
  const auto found = std::find_if(known.begin(), known.end(), [&](const FillName& f) { return f.name == name; });
  if (found == known.end()) value.fail(quoted(name) + " is no fill here; nearest: " + nearest_name(name, names));
  Fill fill{std::string(name), {}};
  if (open != Text::npos) {
    if (value.text.back() != ')') value.fail(quoted(value.text) + " lacks the closing parenthesis");
    const Value inside{value.text.substr(open + 1, value.text.size() - open - 2), value.column + open + 1};
    fill.args = parse_numbers(inside, std::string(name));
  }
  if (fill.args.size() != found->arguments) {
    value.fail(std::string(name) + " takes " + std::to_string(found->arguments) + " number(s), not " +
               std::to_string(fill.args.size()));
  }
  return fill;
}

void check_fill_range(const Value& value, const Fill& fill) {
  static const std::set<Text> probabilities = {"random", "rows", "neginf", "finitemin"};
  if (probabilities.contains(fill.name) && !(fill.args[0] >= 0 && fill.args[0] <= 1)) {
    value.fail(fill.name + " takes a probability between 0 and 1");
  }
  if (fill.name == "band" && !(fill.args[0] >= 0)) value.fail("band takes a width of at least 0");
  if (fill.name == "blocks" && !(fill.args[0] >= 1)) value.fail("blocks takes a size of at least 1");
  for (double arg : fill.args) {
    if (std::fabs(arg) > 1e300) value.fail(fill.name + " takes numbers up to 1e300");
  }
}

std::array<bool, 4> parse_mask_axes(const Value& value) {
  constexpr Text letters = "BHQK";
  std::array<bool, 4> kept{};
  bool fits = value.text.size() == 4;
  for (std::size_t n = 0; fits && n < 4; ++n) {
    kept[n] = value.text[n] == letters[n];
    fits = kept[n] || value.text[n] == '1';
  }
  if (!fits) value.fail(quoted(value.text) + " is no mask pattern: the letters BHQK in order, each kept or 1");
  return kept;
}

MaskSpec parse_mask(const Value& value) {
  const std::vector<Value> parts = value.split(':');
  if (parts.size() != 3) value.fail("mask=kind:axes:fill is wanted, as bool:BHQK:random(0.5) or add:1H1K:normal");
  MaskSpec mask;
  mask.additive = parse_choice(parts[0], std::array<Text, 2>{"bool", "add"}, "kind of mask") == 1;
  mask.kept = parse_mask_axes(parts[1]);
  mask.fill = parse_fill(parts[2], mask.additive ? additive_mask_fills() : boolean_mask_fills());
  check_fill_range(parts[2], mask.fill);
  return mask;
}

LengthSpec parse_lengths(const Value& value, const std::string& what) {
  LengthSpec spec;
  const std::vector<Value> parts = value.split('/');
  const auto tail = [](const Value& part) { return Value{part.text.substr(2), part.column + 2}; };
  if (parts.size() == 1 && !value.text.starts_with("q:") && !value.text.starts_with("k:")) {
    spec.key = parse_list(value, what);
  } else if (parts.size() == 2 && parts[0].text.starts_with("q:") && parts[1].text.starts_with("k:")) {
    spec.query = parse_list(tail(parts[0]), what);
    spec.key = parse_list(tail(parts[1]), what);
  } else {
    value.fail(quoted(value.text) + " is neither a list 5,9 nor q:5,9/k:8,8");
  }
  return spec;
}

std::pair<std::int64_t, std::int64_t> parse_pair(const Value& value, char separator, std::int64_t least,
                                                 const std::string& what) {
  const std::vector<Value> parts = value.split(separator);
  if (parts.size() > 2) value.fail(quoted(value.text) + " is not " + what);
  const std::int64_t first = parse_integer(parts[0], least, what);
  return {first, parts.size() == 2 ? parse_integer(parts[1], least, what) : first};
}

std::int64_t parse_window_side(const Value& value) {
  return value.text == "inf" ? Problem::kUnbounded : parse_integer(value, 0, "a window side (a number or inf)");
}

Index4 parse_strides(const Value& value, bool zero_allowed) {
  const std::vector<Value> parts = value.split(',');
  if (parts.size() != 4) value.fail("four element strides are wanted, in the order b,h,l,d");
  Index4 strides{};
  for (std::size_t n = 0; n < 4; ++n) strides[n] = parse_integer(parts[n], zero_allowed ? 0 : 1, "a stride");
  return strides;
}

/// Everything about the keys: how each is read, in the order in which they print.
class Parser {
 public:
  explicit Parser(Problem start) : problem_(std::move(start)) { define_keys(); }

  Problem parse(Text line, bool sizes_given) {
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
  using Reader = std::function<void(const Value&)>;

  void flag(const std::string& key, std::function<void()> set) { flags_[key] = std::move(set); }
  void key(const std::string& name, Reader reader) { readers_[name] = std::move(reader); }

  void parse_token(Text token, std::size_t column) {
    const std::size_t equals = token.find('=');
    const std::string name(token.substr(0, equals));
    const bool is_flag = equals == Text::npos;
    if (!flags_.contains(name) && !readers_.contains(name)) {
      Names names;
      for (const auto& [known, unused] : flags_) names.push_back(known);
      for (const auto& [known, unused] : readers_) names.push_back(known);
      throw CaseError(column, "unknown key " + quoted(name) + "; nearest: " + nearest_name(name, names));
    }
    if (!columns_.emplace(name, column).second) throw CaseError(column, name + " is given twice");
    if (sizes_given_ && kSizeKeys.contains(name)) {
      throw CaseError(column, name + " comes from the tensors and can't be set here");
    }
    if (is_flag) {
      if (!flags_.contains(name)) throw CaseError(column, name + " needs a value: " + name + "=...");
      flags_[name]();
      return;
    }
    const Value value{token.substr(equals + 1), column + equals + 1};
    if (!readers_.contains(name)) throw CaseError(column, name + " is a flag and takes no value");
    if (value.text.empty()) value.fail(name + " needs a value");
    readers_[name](value);
  }

  void define_keys();
  void define_tensor_keys();

  void finish(Text line) {
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
    if (p.past > 0 && columns_.contains("align")) {
      throw CaseError(column_of("align"), "align and past exclude each other: past sets the diagonal");
    }
    if (p.query_length != p.key_length && p.uses_diagonal() && !columns_.contains("align") && p.past == 0 &&
        !columns_.contains("past")) {
      const std::string user = p.causal ? "causal" : columns_.contains("window") ? "window" : "alibi";
      throw CaseError(column_of(user), user + " with Lq != Lk needs align=top-left or align=bottom-right");
    }
    if (columns_.contains("mask.dtype") && (!p.mask || !p.mask->additive)) {
      throw CaseError(column_of("mask.dtype"), "mask.dtype belongs to an additive mask (mask=add:...)");
    }
    if (mask_dtype_ && *mask_dtype_ != p.dtype) p.mask->dtype = mask_dtype_;
    drop_defaults();
    if (auto fault = find_fault(p)) throw CaseError(column_of(fault->key), fault->key + ": " + fault->message);
  }

  /// Values that repeat the default are the default: equal problems print equal lines.
  void drop_defaults() {
    Problem& p = problem_;
    for (TensorId id : values_of<TensorId>()) {
      TensorSpec& spec = p.tensor(id);
      if (spec.layout == p.layout) spec.layout.reset();
      if (spec.fill == p.fill) spec.fill.reset();
      if (spec.strides) {
        const Index4 given = *spec.strides;
        spec.strides.reset();
        if (place_of(p, id).strides != given) spec.strides = given;
      }
    }
    if (p.scale && *p.scale == 1.0 / std::sqrt(static_cast<double>(p.key_dim))) p.scale.reset();
  }

  inline static const std::set<std::string> kSizeKeys = {"batch", "heads", "seq", "dim", "dtype", "seed", "fill"};

  Problem problem_;
  bool sizes_given_ = false;
  std::map<std::string, std::function<void()>> flags_;
  std::map<std::string, Reader> readers_;
  std::map<std::string, std::size_t> columns_;
  std::optional<DType> mask_dtype_;
};

void Parser::define_keys() {
  Problem& p = problem_;
  key("op", [&](const Value& v) { p.op = parse_name<Op>(v, "operator"); });
  key("dtype", [&](const Value& v) { p.dtype = parse_name<DType>(v, "type"); });
  key("batch", [&](const Value& v) { p.batch = parse_integer(v, 0, "a batch size"); });
  key("heads", [&](const Value& v) {
    std::tie(p.query_heads, p.key_heads) = parse_pair(v, '/', 0, "a head count H or Hq/Hkv");
  });
  key("seq",
      [&](const Value& v) { std::tie(p.query_length, p.key_length) = parse_pair(v, 'x', 0, "a length L or LqxLk"); });
  key("dim", [&](const Value& v) {
    std::tie(p.key_dim, p.value_dim) = parse_pair(v, '/', 1, "a head dimension D or Dqk/Dv");
  });
  key("scale", [&](const Value& v) { p.scale = parse_number(v, "scale"); });
  flag("causal", [&] { p.causal = true; });
  key("align", [&](const Value& v) { p.align = parse_name<Align>(v, "alignment"); });
  key("window", [&](const Value& v) {
    const std::vector<Value> parts = v.split(':');
    if (parts.size() != 2) v.fail("window=left:right is wanted, each a number or inf");
    p.window_left = parse_window_side(parts[0]);
    p.window_right = parse_window_side(parts[1]);
  });
  key("prefix", [&](const Value& v) { p.prefix = parse_integer(v, 0, "a count of keys"); });
  key("lengths", [&](const Value& v) { p.lengths = parse_lengths(v, "a length"); });
  key("segments", [&](const Value& v) { p.segments = parse_lengths(v, "a segment length"); });
  key("mask", [&](const Value& v) { p.mask = parse_mask(v); });
  key("mask.dtype", [&](const Value& v) { mask_dtype_ = parse_name<DType>(v, "type"); });
  key("blocks", [&](const Value& v) {
    const std::vector<Value> parts = v.split(':');
    if (parts.size() != 2) v.fail("blocks=RxC:fill is wanted, as blocks=64x128:random(0.5)");
    BlockSpec blocks;
    std::tie(blocks.rows, blocks.columns) = parse_pair(parts[0], 'x', 1, "a block size RxC");
    blocks.fill = parse_fill(parts[1], boolean_mask_fills());
    check_fill_range(parts[1], blocks.fill);
    p.blocks = blocks;
  });
  key("softcap", [&](const Value& v) {
    p.softcap = parse_number(v, "softcap");
    if (!(*p.softcap > 0)) v.fail("softcap must be above 0; leave it out to switch it off");
  });
  flag("alibi", [&] { p.alibi = true; });
  key("alibi", [&](const Value& v) {
    p.alibi = true;
    p.alibi_slopes = parse_numbers(v, "a slope");
  });
  flag("sinks", [&] { p.sinks = true; });
  key("sinks", [&](const Value& v) {
    p.sinks = true;
    p.sink_values = parse_numbers(v, "a sink");
  });
  key("dropout", [&](const Value& v) {
    p.dropout = parse_number(v, "dropout");
    if (!(p.dropout >= 0 && p.dropout < 1)) v.fail("dropout must lie in [0, 1)");
  });
  key("past", [&](const Value& v) { p.past = parse_integer(v, 0, "a count of cached keys"); });
  key("paged", [&](const Value& v) { p.page_size = parse_integer(v, 1, "a page size"); });
  key("decay", [&](const Value& v) {
    p.decay_per_head = parse_choice(v, std::array<Text, 2>{"dim", "head"}, "decay") == 1;
  });
  key("beta", [&](const Value& v) {
    p.beta_shared = parse_choice(v, std::array<Text, 2>{"head", "one"}, "beta") == 1;
  });
  flag("state", [&] { p.initial_state = true; });
  key("out", [&](const Value& v) {
    std::set<Output> wanted;
    for (const Value& part : v.split(',')) {
      if (!wanted.insert(parse_name<Output>(part, "output")).second) part.fail("listed twice");
    }
    p.outputs.assign(wanted.begin(), wanted.end());
  });
  key("layout", [&](const Value& v) { p.layout = parse_name<Layout>(v, "layout"); });
  define_tensor_keys();
  key("fill", [&](const Value& v) {
    p.fill = parse_fill(v, tensor_fills());
    check_fill_range(v, p.fill);
  });
  key("poison", [&](const Value& v) {
    static constexpr std::array<Text, 6> kinds = {"hidden:k",  "hidden:v",  "hidden:kv",
                                                  "visible:k", "visible:v", "visible:kv"};
    p.poison = std::string(kinds[parse_choice(v, kinds, "poison")]);
  });
  key("seed", [&](const Value& v) {
    const char* end = v.text.data() + v.text.size();
    const auto [stop, error] = std::from_chars(v.text.data(), end, p.seed);
    if (error != std::errc() || stop != end) v.fail(quoted(v.text) + " is not a 64-bit seed");
  });
}

void Parser::define_tensor_keys() {
  for (TensorId id : values_of<TensorId>()) {
    const std::string prefix = std::string(name_of(id)) + ".";
    TensorSpec& spec = problem_.tensor(id);
    key(prefix + "strides", [&spec, id](const Value& v) { spec.strides = parse_strides(v, id != TensorId::out); });
    key(prefix + "offset", [&spec](const Value& v) { spec.offset = parse_integer(v, 0, "an offset"); });
    if (id == TensorId::mask) continue;
    key(prefix + "layout", [&spec](const Value& v) { spec.layout = parse_name<Layout>(v, "layout"); });
    if (id == TensorId::out) continue;
    key(prefix + "fill", [&spec](const Value& v) {
      spec.fill = parse_fill(v, tensor_fills());
      check_fill_range(v, *spec.fill);
    });
  }
}

}  // namespace

const std::vector<FillName>& tensor_fills() {
  static const std::vector<FillName> fills = {{"normal", 0},  {"uniform", 0},  {"spread", 1},   {"ties", 0},
                                              {"onehot", 0},  {"constant", 1}, {"denormal", 0}, {"huge", 0},
                                              {"integer", 0}, {"cancel", 0},   {"mixed", 0}};
  return fills;
}

const std::vector<FillName>& boolean_mask_fills() {
  static const std::vector<FillName> fills = {{"random", 1}, {"band", 1}, {"blocks", 1},
                                              {"rows", 1},   {"none", 0}, {"all", 0}};
  return fills;
}

const std::vector<FillName>& additive_mask_fills() {
  static const std::vector<FillName> fills = {
      {"normal", 0}, {"neginf", 1}, {"finitemin", 1}, {"band", 1}, {"large", 0}};
  return fills;
}

Problem parse_case(std::string_view line) { return Parser(Problem{}).parse(line, false); }

Problem with_options(const Problem& sizes, std::string_view tokens) { return Parser(sizes).parse(tokens, true); }

}  // namespace attest
