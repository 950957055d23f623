// Options of one tensor: its type, its place, its scales.
#include "reference/call/tensor_place.h"
#include "reference/options/option_rows.h"

namespace attest::option_rows {
namespace {

/// An option of one tensor: "q.strides".
template <class T>
Option of_tensor(TensorId tensor, const char* suffix, T TensorSpec::*member, std::string how, std::string few_words) {
  Option option = composite(std::string(name_of(tensor)) + suffix, std::move(how), std::move(few_words));
  option.files(InFiles::unsaid);
  option.copy = [=](Call& to, const Call& from) { to.tensor(tensor).*member = from.tensor(tensor).*member; };
  return option;
}

}  // namespace

/// Those that a tensor may be stored in.
TypeNames types_of(TensorId id) {
  if (is_scales(id)) return kScaleTypeNames;
  return may_be_narrow(id) ? TypeNames(kStorageNames) : TypeNames(kWideNames);
}

/// The plainest first.
std::vector<std::string> types_to_try(TensorId id) {
  const TypeNames all = types_of(id);
  std::vector<std::string> names(all.begin(), all.end());
  std::erase(names, "f32");
  names.insert(names.begin(), "f32");
  return names;
}

/// "token", "block:32"
Option scales_of(TensorId tensor, std::optional<ScaleSpec> Call::*member) {
  const std::string name(name_of(tensor));
  Option option = composite(name + ".scale", "tensor|head|token|block:n",
                            "an element of " + name + " is its code of 8 or 4 bits times the scale of its share");
  option.parse = [=](Call& p, const OptionText& v) {
    const std::vector<OptionText> parts = v.split(':');
    ScaleSpec spec{parse_enum<ScaleShare>(parts[0], "share of a scale"), 0};
    const bool in_blocks = spec.share == ScaleShare::block;
    if (parts.size() != (in_blocks ? 2u : 1u)) v.fail("tensor, head, token or block:n is wanted, as block:32");
    if (in_blocks) spec.block = parse_integer(parts[1], 1, "elements of a block");
    p.*member = spec;
  };
  option.print = [=](const Call& p) -> std::optional<std::string> {
    const std::optional<ScaleSpec>& spec = p.*member;
    if (!spec) return std::nullopt;
    return std::string(name_of(spec->share)) +
           (spec->share == ScaleShare::block ? ":" + integer_text(spec->block) : "");
  };
  option.copy = [=](Call& to, const Call& from) { to.*member = from.*member; };
  return option.covers([=](const Call& p) {
    return std::vector<std::string>{name + ".scale=" + std::string(name_of((p.*member)->share))};
  });
}

Option type_of_tensor(TensorId tensor) {
  const bool is_mask = tensor == TensorId::mask;
  Option option = of_tensor(tensor, ".dtype", &TensorSpec::dtype, alternatives_of(types_of(tensor)),
                            is_mask ? "of an additive mask; the call's type otherwise" : "of this tensor alone");
  option.parse = [=](Call& p, const OptionText& v) {
    const std::size_t which = parse_name(v, types_of(tensor), "type");
    p.tensor(tensor).dtype = is_scales(tensor) ? kScaleTypes[which] : kStorageTypes[which];
  };
  option.print = [=](const Call& p) -> std::optional<std::string> {
    const auto& type = p.tensor(tensor).dtype;
    if (!type || (is_mask && !p.mask)) return std::nullopt;
    return std::string(name_of(*type));
  };
  option.grown([=](const Call& p) { return format_of(type_of(p, tensor)).since; });
  if (!is_mask) option.files(is_output(tensor) ? InFiles::said : InFiles::shown);
  return option;
}

Option layout_of(TensorId tensor) {
  Option option = of_tensor(tensor, ".layout", &TensorSpec::layout, "bhld|blhd|bld|qkv|kv", "of this tensor alone");
  option.parse = [=](Call& p, const OptionText& v) { p.tensor(tensor).layout = parse_enum<Layout>(v, "layout"); };
  option.print = [=](const Call& p) -> std::optional<std::string> {
    const auto& layout = p.tensor(tensor).layout;
    if (!layout) return std::nullopt;
    return std::string(name_of(*layout));
  };
  return option;
}

Option strides_of(TensorId tensor) {
  const bool unique = has_place_for_each(tensor);
  Option option = of_tensor(tensor, ".strides", &TensorSpec::strides, "b,h,l,d",
                            unique ? "in elements" : "in elements, 0 for a broadcast axis");
  option.parse = [=](Call& p, const OptionText& v) { p.tensor(tensor).strides = parse_strides(v, !unique); };
  option.print = [=](const Call& p) -> std::optional<std::string> {
    const auto& strides = p.tensor(tensor).strides;
    if (!strides) return std::nullopt;
    return joined(*strides, integer_text);
  };
  return option;
}

Option offset_of(TensorId tensor) {
  Option option = of_tensor(tensor, ".offset", &TensorSpec::offset, "n", "elements before the first");
  option.parse = [=](Call& p, const OptionText& v) { p.tensor(tensor).offset = parse_integer(v, 0, "an offset"); };
  option.print = [=](const Call& p) -> std::optional<std::string> {
    if (p.tensor(tensor).offset == 0) return std::nullopt;
    return integer_text(p.tensor(tensor).offset);
  };
  return option;
}

}  // namespace attest::option_rows
