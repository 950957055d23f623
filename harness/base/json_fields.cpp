#include "harness/base/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "harness/base/text.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::optional<std::size_t> count_of(const OrderedJson& json) {
  constexpr double kMost = 1e15;
  if (!json.is_number()) return std::nullopt;
  const double value = json.get<double>();
  if (!(value >= 0 && value <= kMost) || std::floor(value) != value) return std::nullopt;
  return static_cast<std::size_t>(value);
}

}  // namespace

JsonFields::JsonFields(const OrderedJson& json, std::string place) : json_(json), place_(std::move(place)) {
  if (!json.is_object()) fail("is no object");
}

std::string JsonFields::text(const char* key) const {
  const OrderedJson& value = at(key);
  if (!value.is_string()) fail(fmt::format("has a \"{}\" that is no text", key));
  return printable_line(value.get<std::string>());
}

double JsonFields::number(const char* key) const {
  const OrderedJson& value = at(key);
  if (!value.is_number()) fail(fmt::format("has a \"{}\" that is no number", key));
  return value.get<double>();
}

std::size_t JsonFields::count(const char* key) const {
  const auto value = count_of(at(key));
  if (!value) fail(fmt::format("has a \"{}\" that is no count", key));
  return *value;
}

bool JsonFields::flag(const char* key) const {
  const OrderedJson& value = at(key);
  if (!value.is_boolean()) fail(fmt::format("has a \"{}\" that is neither true nor false", key));
  return value.get<bool>();
}

const OrderedJson& JsonFields::list(const char* key) const {
  const OrderedJson& value = at(key);
  if (!value.is_array()) fail(fmt::format("has a \"{}\" that is no list", key));
  return value;
}

const OrderedJson& JsonFields::object(const char* key) const {
  const OrderedJson& value = at(key);
  if (!value.is_object()) fail(fmt::format("has a \"{}\" that is no object", key));
  return value;
}

std::vector<std::string> JsonFields::texts(const char* key) const {
  std::vector<std::string> all;
  for (const OrderedJson& one : list(key)) {
    if (!one.is_string()) fail(fmt::format("has a \"{}\" with what is no text", key));
    all.push_back(printable_line(one.get<std::string>()));
  }
  return all;
}

std::vector<std::size_t> JsonFields::counts(const char* key) const {
  std::vector<std::size_t> all;
  for (const OrderedJson& one : list(key)) {
    const auto value = count_of(one);
    if (!value) fail(fmt::format("has a \"{}\" with what is no count", key));
    all.push_back(*value);
  }
  return all;
}

const OrderedJson& JsonFields::at(const char* key) const {
  const auto found = json_.find(key);
  if (found == json_.end()) fail(fmt::format("has no \"{}\"", key));
  return *found;
}

std::string JsonFields::place_in(const char* key, std::size_t number) const {
  return fmt::format("{}: number {} of \"{}\"", place_, number, key);
}

void JsonFields::fail(const std::string& what) const { throw UserError(place_ + " " + what); }

}  // namespace attest
