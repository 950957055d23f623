// The parameters of a backend in messages between the harness and a worker.
#pragma once

#include "backends/backend.h"
#include "harness/backends/isolation/messages.h"

namespace attest {

inline void to_json(Json& json, const Parameter& p) {
  json = {{"name", p.name}, {"value", p.value}, {"standard", p.standard}, {"choices", p.choices}};
}
inline void from_json(const Json& json, Parameter& p) {
  p.name = json.at("name").get<std::string>();
  p.value = json.at("value").get<std::int64_t>();
  p.standard = json.at("standard").get<std::int64_t>();
  p.choices = json.at("choices").get<std::vector<std::int64_t>>();
}

inline void to_json(Json& json, const Tuning& tuning) {
  json = {{"version", tuning.version}, {"parameters", tuning.parameters}};
}
inline void from_json(const Json& json, Tuning& tuning) {
  tuning.version = json.at("version").get<int>();
  tuning.parameters = json.at("parameters").get<std::vector<Parameter>>();
}

}  // namespace attest
