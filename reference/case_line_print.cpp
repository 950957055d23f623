// Canonical printing of case lines: the inverse of case_line.cpp.
#include <charconv>

#include "reference/case_line.h"

namespace attest {
namespace {

std::string join(const auto& list, const auto& print) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : ",") + print(item);
  return text;
}

std::string integer(std::int64_t value) { return std::to_string(value); }

std::string pair_text(std::int64_t first, std::int64_t second, const char* separator) {
  return first == second ? integer(first) : integer(first) + separator + integer(second);
}

std::string fill_text(const Fill& fill) {
  return fill.args.empty() ? fill.name : fill.name + "(" + join(fill.args, print_number) + ")";
}

std::string side_text(std::int64_t side) { return side == Problem::kUnbounded ? "inf" : integer(side); }

std::string lengths_text(const LengthSpec& spec) {
  const std::string keys = join(spec.key, integer);
  return spec.query.empty() ? keys : "q:" + join(spec.query, integer) + "/k:" + keys;
}

std::string mask_text(const MaskSpec& mask) {
  std::string axes = "BHQK";
  for (std::size_t n = 0; n < 4; ++n) {
    if (!mask.kept[n]) axes[n] = '1';
  }
  return (mask.additive ? "add:" : "bool:") + axes + ":" + fill_text(mask.fill);
}

/// Collects tokens in the order of the grammar's table.
class Line {
 public:
  void flag(const std::string& name) { text_ += (text_.empty() ? "" : " ") + name; }
  void value(const std::string& key, const std::string& value) { flag(key + "=" + value); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void print_visibility(const Problem& p, Line& line) {
  if (p.causal) line.flag("causal");
  const bool required = p.query_length != p.key_length && p.uses_diagonal() && p.past == 0;
  if (p.align != Align::top_left || required) line.value("align", std::string(name_of(p.align)));
  if (p.window_left != Problem::kUnbounded || p.window_right != Problem::kUnbounded) {
    line.value("window", side_text(p.window_left) + ":" + side_text(p.window_right));
  }
  if (p.prefix != 0) line.value("prefix", integer(p.prefix));
  if (p.lengths) line.value("lengths", lengths_text(*p.lengths));
  if (p.segments) line.value("segments", lengths_text(*p.segments));
  if (p.mask) line.value("mask", mask_text(*p.mask));
  if (p.mask && p.mask->dtype) line.value("mask.dtype", std::string(name_of(*p.mask->dtype)));
  if (p.blocks) {
    line.value("blocks", integer(p.blocks->rows) + "x" + integer(p.blocks->columns) + ":" + fill_text(p.blocks->fill));
  }
}

void print_scores(const Problem& p, Line& line) {
  if (p.softcap) line.value("softcap", print_number(*p.softcap));
  if (p.alibi && p.alibi_slopes.empty())
    line.flag("alibi");
  else if (p.alibi)
    line.value("alibi", join(p.alibi_slopes, print_number));
  if (p.sinks && p.sink_values.empty())
    line.flag("sinks");
  else if (p.sinks)
    line.value("sinks", join(p.sink_values, print_number));
  if (p.dropout != 0) line.value("dropout", print_number(p.dropout));
  if (p.past != 0) line.value("past", integer(p.past));
  if (p.page_size) line.value("paged", integer(*p.page_size));
  if (p.decay_per_head) line.value("decay", "head");
  if (p.beta_shared) line.value("beta", "one");
  if (p.initial_state) line.flag("state");
}

void print_tensors(const Problem& p, Line& line) {
  if (p.layout != Layout::bhld) line.value("layout", std::string(name_of(p.layout)));
  const auto each = [&](const char* suffix, const auto& print) {
    for (TensorId id : values_of<TensorId>()) {
      const std::string text = print(p.tensor(id));
      if (!text.empty()) line.value(std::string(name_of(id)) + suffix, text);
    }
  };
  each(".layout", [](const TensorSpec& t) { return t.layout ? std::string(name_of(*t.layout)) : std::string(); });
  each(".strides", [](const TensorSpec& t) { return t.strides ? join(*t.strides, integer) : std::string(); });
  each(".offset", [](const TensorSpec& t) { return t.offset != 0 ? integer(t.offset) : std::string(); });
  if (p.fill != Fill{}) line.value("fill", fill_text(p.fill));
  each(".fill", [](const TensorSpec& t) { return t.fill ? fill_text(*t.fill) : std::string(); });
}

}  // namespace

std::string print_number(double value) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string print_case(const Problem& p) {
  Line line;
  if (p.op != Op::attention) line.value("op", std::string(name_of(p.op)));
  if (p.dtype != DType::f32) line.value("dtype", std::string(name_of(p.dtype)));
  if (p.batch != 1) line.value("batch", integer(p.batch));
  if (p.query_heads != 1 || p.key_heads != 1) line.value("heads", pair_text(p.query_heads, p.key_heads, "/"));
  line.value("seq", pair_text(p.query_length, p.key_length, "x"));
  line.value("dim", pair_text(p.key_dim, p.value_dim, "/"));
  if (p.scale) line.value("scale", print_number(*p.scale));
  print_visibility(p, line);
  print_scores(p, line);
  if (p.outputs != std::vector<Output>{Output::o}) {
    line.value("out", join(p.outputs, [](Output o) { return std::string(name_of(o)); }));
  }
  print_tensors(p, line);
  if (!p.poison.empty()) line.value("poison", p.poison);
  if (p.seed != 0) line.value("seed", std::to_string(p.seed));
  return line.take();
}

}  // namespace attest
