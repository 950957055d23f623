#include "harness/comparison/cause.h"

#include <cstddef>
#include <string_view>

namespace attest {

static_assert(kNames<Cause>.size() == static_cast<std::size_t>(Cause::other) + 1, "one name for each");

std::string FailureCause::text() const {
  if (kind == Cause::other) return about;
  const std::string name(name_of(kind));
  return about.empty() ? name : about + ": " + name;
}

FailureCause cause_from_text(const std::string& text) {
  // No name has a colon.
  const std::size_t colon = text.rfind(": ");
  const bool about_something = colon != std::string::npos;
  const auto kind = value_named<Cause>(about_something ? std::string_view(text).substr(colon + 2) : text);
  if (!kind || *kind == Cause::other || (*kind == Cause::none && about_something)) return {Cause::other, text};
  return {*kind, about_something ? text.substr(0, colon) : ""};
}

Cause cause_of(FloatMode changed) {
  switch (changed) {
    case FloatMode::none: return Cause::none;
    case FloatMode::rounding: return Cause::rounding_mode_changed;
    case FloatMode::flush_to_zero: return Cause::flush_to_zero_changed;
  }
  return Cause::none;
}

Cause cause_of(RefusalCause refusal) {
  switch (refusal) {
    case RefusalCause::backend: return Cause::none;
    case RefusalCause::younger_than_contract: return Cause::younger_than_contract;
    case RefusalCause::younger_than_header: return Cause::younger_than_header;
    case RefusalCause::no_plugin_member: return Cause::no_plugin_member;
  }
  return Cause::none;
}

}  // namespace attest
