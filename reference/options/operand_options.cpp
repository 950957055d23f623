// Options of what becomes of queries, keys and scores: rotation, norms, caps.
#include "reference/options/option_rows.h"

namespace attest::option_rows {
namespace {

/// The smallest eps that no accumulator takes for 0.
constexpr double kLeastEps = 1e-20;

bool is_positive(double x) { return x > 0; }

}  // namespace

/// A cap of the scaled scores, or of <q,k>.
Option softcap() {
  Option option =
      number_option("softcap", &Call::softcap, is_positive, "softcap must be above 0; leave it out to switch it off");
  option.values("c or c:unscaled", "scores become c * tanh(score / c); with `:unscaled`, before they are scaled");
  option.parse = [number = option.parse](Problem& p, const OptionText& v) {
    const std::vector<OptionText> parts = v.split(':');
    if (parts.size() > 2) v.fail("softcap=c or softcap=c:unscaled is wanted");
    if (parts.size() == 2 && parts[1].text != "unscaled")
      parts[1].fail(quoted(parts[1].text) + " is not unscaled, which may follow the cap");
    number(p, parts[0]);
    p.call.unscaled_cap = parts.size() == 2;
  };
  option.print = [number = option.print](const Call& p) {
    std::optional<std::string> text = number(p);
    if (text && p.unscaled_cap) *text += ":unscaled";
    return text;
  };
  option.copy = [](Call& to, const Call& from) {
    to.softcap = from.softcap;
    to.unscaled_cap = from.unscaled_cap;
  };
  return option;
}

Option rope() {
  Option option = composite("rope", "halves|interleaved or style:R",
                            "q and k are rotated: features r and r + R/2, or 2r and 2r + 1; R of all, the first ones");
  option.parse = [](Call& p, const OptionText& v) {
    static constexpr std::array<std::string_view, 2> styles = {"halves", "interleaved"};
    const std::vector<OptionText> parts = v.split(':');
    if (parts.size() > 2) v.fail("rope=style:R is wanted, as rope=halves:64");
    p.rope = parse_name(parts[0], styles, "style of rope") == 0 ? Rope::halves : Rope::interleaved;
    p.rope_dims = parts.size() == 2 ? parse_integer(parts[1], 2, "a count of features") : 0;
    if (p.rope_dims % 2 != 0) parts[1].fail("features are rotated in pairs; an even number is wanted");
  };
  option.print = [](const Call& p) -> std::optional<std::string> {
    if (p.rope == Rope::none) return std::nullopt;
    return std::string(name_of(p.rope)) + (p.rope_dims > 0 ? ":" + integer_text(p.rope_dims) : "");
  };
  option.copy = [](Call& to, const Call& from) {
    to.rope = from.rope;
    to.rope_dims = from.rope_dims;
  };
  return option.covers([](const Call& p) { return std::vector{"rope=" + std::string(name_of(p.rope))}; });
}

/// Of the angles in the tables, which are data.
Option rope_base() {
  Option option = composite("rope.base", "x", "angles are position * x^(-2r/R); 10000 otherwise");
  option.files(InFiles::unsaid);
  option.parse = [](Problem& p, const OptionText& v) {
    const double base = parse_number(v, "rope.base");
    if (!(base >= 1 && base <= 1e12)) v.fail("rope.base must lie in [1, 1e12]");
    p.data.rope_base = base;
  };
  option.print = [](const ProblemView& p) -> std::optional<std::string> {
    if (!p.data || p.data->rope_base == TestData{}.rope_base) return std::nullopt;
    return print_number(p.data->rope_base);
  };
  option.copy = [](Problem& to, const Problem& from) { to.data.rope_base = from.data.rope_base; };
  return option;
}

Option norm() {
  Option option = composite("norm", "eps or eps:after",
                            "rows of q and k become x / sqrt(mean(x^2) + eps) * weights, before rope or after it");
  option.parse = [](Call& p, const OptionText& v) {
    const std::vector<OptionText> parts = v.split(':');
    if (parts.size() > 2) v.fail("norm=eps or norm=eps:after is wanted");
    if (parts.size() == 2 && parts[1].text != "after")
      parts[1].fail(quoted(parts[1].text) + " is not after, which may follow eps");
    const double eps = parse_number(parts[0], "norm");
    if (!(eps >= kLeastEps && eps <= 1)) parts[0].fail("eps of norm must lie in [1e-20, 1]");
    p.norm = eps;
    p.norm_after_rope = parts.size() == 2;
  };
  option.print = [](const Call& p) -> std::optional<std::string> {
    if (!p.norm) return std::nullopt;
    return print_number(*p.norm) + (p.norm_after_rope ? ":after" : "");
  };
  option.copy = [](Call& to, const Call& from) {
    to.norm = from.norm;
    to.norm_after_rope = from.norm_after_rope;
  };
  return option.covers(
      [](const Call& p) { return std::vector<std::string>{p.norm_after_rope ? "norm=after" : "norm"}; });
}

/// Alone as the kernels have it that know no other eps.
Option l2norm() {
  Option option = number_option(
      "l2norm", &Call::l2norm, [](double eps) { return eps >= kLeastEps && eps <= 1; },
      "eps of l2norm must lie in [1e-20, 1]");
  option.values("eps", "rows of q and k become x / sqrt(sum(x^2) + eps); alone 1e-06");
  option.stands_alone = true;
  option.parse = [number = option.parse](Problem& p, const OptionText& v) {
    if (v.text.empty())
      p.call.l2norm = 1e-6;
    else
      number(p, v);
  };
  return option;
}

}  // namespace attest::option_rows
