// Options that say which keys a query sees, and how many there are.
#include <algorithm>

#include "reference/options/option_rows.h"

namespace attest::option_rows {

Option align() {
  Option option =
      name_option("align", &Call::align, std::array<std::string_view, 2>{"top-left", "bottom-right"}, "alignment");
  // Where the diagonal matters and the lengths differ it is said, whichever it is.
  option.print = [](const Call& p) -> std::optional<std::string> {
    const bool required = p.query_length != p.key_length && p.uses_diagonal() && p.past == 0;
    if (p.align == Align::top_left && !required) return std::nullopt;
    return std::string(name_of(p.align));
  };
  return option;
}

Option window() {
  Option option = composite("window", "left:right", "keys beside the diagonal, each 0 or more, or inf; W shows W + 1");
  option.parse = [](Call& p, const OptionText& v) {
    const std::vector<OptionText> parts = v.split(':');
    if (parts.size() != 2) v.fail("window=left:right is wanted, each a number or inf");
    p.window_left = parse_window_side(parts[0]);
    p.window_right = parse_window_side(parts[1]);
  };
  option.print = [](const Call& p) -> std::optional<std::string> {
    if (p.window_left == Call::kUnbounded && p.window_right == Call::kUnbounded) return std::nullopt;
    return window_side_text(p.window_left) + ":" + window_side_text(p.window_right);
  };
  option.copy = [](Call& to, const Call& from) {
    to.window_left = from.window_left;
    to.window_right = from.window_right;
  };
  return option;
}

Option lengths(std::string key, std::optional<LengthSpec> Call::*member, const std::string& what,
               std::string few_words) {
  Option option = composite(std::move(key), "k,... or q:q,.../k:k,...", std::move(few_words));
  option.parse = [=](Call& p, const OptionText& v) { p.*member = parse_lengths(v, what); };
  option.print = [=](const Call& p) -> std::optional<std::string> {
    if (!(p.*member)) return std::nullopt;
    return lengths_text(*(p.*member));
  };
  option.copy = [=](Call& to, const Call& from) { to.*member = from.*member; };
  return option.covers([key = option.key, member](const Call& p) {
    std::vector<std::string> names = {key};
    if (!(p.*member)->query.empty()) names.push_back(key + " of queries");
    return names;
  });
}

Option mask() {
  Option option = composite("mask", "bool:BHQK:fill or add:BHQK:fill", "letters kept, or 1 for a broadcast axis");
  option.files(InFiles::unsaid);
  option.parse = [](Problem& p, const OptionText& v) {
    const std::vector<OptionText> parts = v.split(':');
    if (parts.size() != 2 && parts.size() != 3)
      v.fail("mask=kind:axes:fill is wanted, as bool:BHQK:random(0.5) or add:1H1K:normal");
    MaskSpec mask;
    mask.additive = parse_name(parts[0], std::array<std::string_view, 2>{"bool", "add"}, "kind of mask") == 1;
    mask.kept = parse_mask_axes(parts[1]);
    p.data.mask_fill = parts.size() == 2
                           ? Fill{mask.additive ? "normal" : "all", {}}
                           : parse_fill(parts[2], mask.additive ? additive_mask_fills() : boolean_mask_fills());
    p.call.mask = mask;
  };
  option.print = [](const ProblemView& p) -> std::optional<std::string> {
    const std::optional<MaskSpec>& mask = p.call.mask;
    if (!mask) return std::nullopt;
    return (mask->additive ? "add:" : "bool:") + mask_axes_text(mask->kept) +
           (p.data ? ":" + fill_text(p.data->mask_fill) : "");
  };
  option.copy = [](Problem& to, const Problem& from) {
    to.call.mask = from.call.mask;
    to.data.mask_fill = from.data.mask_fill;
  };
  return option;
}

Option blocks() {
  Option option = composite("blocks", "RxC:fill", "block-sparse visibility");
  option.parse = [](Problem& p, const OptionText& v) {
    const std::vector<OptionText> parts = v.split(':');
    if (parts.size() > 2) v.fail("blocks=RxC:fill is wanted, as blocks=64x128:random(0.5)");
    BlockSpec blocks;
    std::tie(blocks.rows, blocks.columns) = parse_pair(parts[0], 'x', 1, "a block size RxC");
    p.data.block_fill = parts.size() == 1 ? Fill{"all", {}} : parse_fill(parts[1], block_fills());
    p.call.blocks = blocks;
  };
  option.print = [](const ProblemView& p) -> std::optional<std::string> {
    const std::optional<BlockSpec>& blocks = p.call.blocks;
    if (!blocks) return std::nullopt;
    return integer_text(blocks->rows) + "x" + integer_text(blocks->columns) +
           (p.data ? ":" + fill_text(p.data->block_fill) : "");
  };
  option.copy = [](Problem& to, const Problem& from) {
    to.call.blocks = from.call.blocks;
    to.data.block_fill = from.data.block_fill;
  };
  return option;
}

Option select() {
  Option option = composite("select", "n[xB][:shared][:fill]", "keys, or blocks of B, by number: n for each query");
  option.parse = [](Problem& p, const OptionText& v) {
    const std::vector<OptionText> parts = v.split(':');
    SelectSpec select;
    const std::vector<OptionText> sizes = parts[0].split('x');
    if (sizes.size() > 2) v.fail("select=n or select=nxB is wanted, as select=16x64");
    select.count = parse_integer(sizes[0], 1, "a count of keys");
    if (sizes.size() == 2) select.block = parse_integer(sizes[1], 1, "keys of a block");
    std::size_t next = 1;
    if (next < parts.size() && parts[next].text == "shared") {
      select.shared = true;
      ++next;
    }
    p.data.select_fill = next < parts.size() ? parse_fill(parts[next++], select_fills()) : Fill{"distinct", {}};
    if (next < parts.size()) v.fail("select=n:shared:fill is wanted, as select=16:shared:random(0.1)");
    p.call.select = select;
  };
  option.print = [](const ProblemView& p) -> std::optional<std::string> {
    const std::optional<SelectSpec>& select = p.call.select;
    if (!select) return std::nullopt;
    const bool is_plain = !p.data || p.data->select_fill == Fill{"distinct", {}};
    return integer_text(select->count) + (select->block > 1 ? "x" + integer_text(select->block) : "") +
           (select->shared ? ":shared" : "") + (is_plain ? "" : ":" + fill_text(p.data->select_fill));
  };
  option.copy = [](Problem& to, const Problem& from) {
    to.call.select = from.call.select;
    to.data.select_fill = from.data.select_fill;
  };
  return option;
}

Option prefix() {
  Option option =
      integer_option("prefix", &Call::prefix, 0, "a count of keys")
          .values("N or N:causal", "keys that every query sees; with `:causal`, those right of it are hidden still");
  option.parse = [count = option.parse](Problem& p, const OptionText& v) {
    const std::vector<OptionText> parts = v.split(':');
    if (parts.size() > 2) v.fail("prefix=N or prefix=N:causal is wanted");
    if (parts.size() == 2 && parts[1].text != "causal")
      parts[1].fail(quoted(parts[1].text) + " is not causal, which may follow the count");
    count(p, parts[0]);
    p.call.prefix_causal = parts.size() == 2;
  };
  option.print = [count = option.print](const Call& p) {
    std::optional<std::string> text = count(p);
    if (text && p.prefix_causal) *text += ":causal";
    return text;
  };
  option.copy = [](Call& to, const Call& from) {
    to.prefix = from.prefix;
    to.prefix_causal = from.prefix_causal;
  };
  return option;
}

/// One count for all batches, or one for each. Equal counts are one.
Option past() {
  Option option = integer_option("past", &Call::past, 0, "a count of cached keys");
  option.parse = [](Call& p, const OptionText& v) {
    std::vector<std::int64_t> counts;
    for (const OptionText& part : v.split(',')) counts.push_back(parse_integer(part, 0, "a count of cached keys"));
    p.past = *std::ranges::max_element(counts);
    p.past_lengths.clear();
    if (*std::ranges::min_element(counts) != p.past) p.past_lengths = std::move(counts);
  };
  option.print = [](const Call& p) -> std::optional<std::string> {
    if (p.past == 0) return std::nullopt;
    return p.past_lengths.empty() ? integer_text(p.past) : joined(p.past_lengths, integer_text);
  };
  option.copy = [](Call& to, const Call& from) {
    to.past = from.past;
    to.past_lengths = from.past_lengths;
  };
  return option;
}

}  // namespace attest::option_rows
