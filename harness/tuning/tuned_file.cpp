#include "harness/tuning/tuned_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ostream>

#include "harness/base/json_fields.h"
#include "harness/base/machine.h"
#include "harness/base/schema.h"
#include "harness/base/text_file.h"
#include "harness/base/user_error.h"

namespace attest {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* kKind = "tuned";
constexpr int kSchema = 1;
constexpr std::uintmax_t kMaxTunedFileBytes = 4 << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// "attest/tuned.json" in the user's cache; empty where it has no place.
fs::path file_in_cache() {
  const std::string cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (cache.empty() && home.empty()) return {};
  return (cache.empty() ? fs::path(home) / ".cache" : fs::path(cache)) / "attest" / "tuned.json";
}

bool same_place(const Tuned& a, const Tuned& b) {
  return a.backend == b.backend && a.library == b.library && a.device == b.device && a.processor == b.processor &&
         a.version == b.version;
}

Tuned tuned_from(const JsonFields& fields, const std::string& place) {
  Tuned tuned{fields.text("backend"),   fields.text("library"),  fields.text("device"),
              fields.text("processor"), fields.count("version"), {},
              fields.number("ratio"),   fields.texts("cases"),   fields.text("attest"),
              fields.text("commit")};
  for (const auto& [name, value] : fields.object("parameters").items()) {
    if (!value.is_number_integer()) throw UserError(fmt::format("{}: a parameter is no whole number", place));
    tuned.parameters.emplace_back(name, value.get<std::int64_t>());
  }
  return tuned;
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> TunedChoices::chosen_for(const Backend& backend) const {
  const Tuned here = tuned_here(backend, backend.tuning());
  const auto found = std::find_if(list_.begin(), list_.end(), [&](const Tuned& t) { return same_place(t, here); });
  return found == list_.end() ? std::vector<std::pair<std::string, std::int64_t>>{} : found->parameters;
}

void TunedChoices::put(Tuned tuned) {
  std::erase_if(list_, [&](const Tuned& t) { return same_place(t, tuned); });
  list_.push_back(std::move(tuned));
}

Tuned tuned_here(const Backend& backend, const Tuning& chosen) {
  const Identity identity = backend.identity();
  Tuned tuned;
  tuned.backend = identity.name;
  tuned.library = identity.library;
  tuned.device = identity.device;
  tuned.processor = this_machine().cpu;
  tuned.version = static_cast<std::size_t>(chosen.version);
  for (const Parameter& p : chosen.parameters) tuned.parameters.emplace_back(p.name, p.value);
  tuned.attest = ATTEST_VERSION;
  tuned.commit = build_commit();
  return tuned;
}

fs::path tuned_file() {
  const std::string named = variable("ATTEST_TUNED");
  if (named.empty()) return file_in_cache();
  if (std::error_code error; !fs::exists(named, error))
    throw UserError("ATTEST_TUNED: there is no file " + named + "; `attest tune --cache FILE` writes one");
  return named;
}

fs::path default_tuned_file() {
  fs::path path = file_in_cache();
  if (path.empty()) throw UserError("neither XDG_CACHE_HOME nor HOME is set: name a file with --cache FILE");
  return path;
}

TunedChoices read_tuned(const fs::path& path) {
  TunedChoices choices;
  if (std::error_code error; !fs::exists(path, error)) return choices;
  const std::string what =
      path.string() + ": is no file of `attest tune`; remove it, or name another with $ATTEST_TUNED";
  std::ifstream file = open_text(path, kMaxTunedFileBytes);
  const OrderedJson json = OrderedJson::parse(file, nullptr, false);
  if (!json.is_object() || json.value("kind", OrderedJson()) != kKind) throw UserError(what);
  const JsonFields fields(json, path.string());
  require_schema(path.string(), fields.at("schema").dump(), kSchema);
  std::size_t number = 0;
  for (const OrderedJson& one : fields.list("tuned")) {
    const std::string place = fields.place_in("tuned", ++number);
    choices.list_.push_back(tuned_from(JsonFields(one, place), place));
  }
  return choices;
}

void write_tuned(std::ostream& out, const TunedChoices& choices) {
  OrderedJson list = OrderedJson::array();
  for (const Tuned& t : choices.all()) {
    OrderedJson parameters = OrderedJson::object();
    for (const auto& [name, value] : t.parameters) parameters[name] = value;
    list.push_back({{"backend", t.backend},
                    {"library", t.library},
                    {"device", t.device},
                    {"processor", t.processor},
                    {"version", t.version},
                    {"parameters", parameters},
                    {"ratio", t.ratio},
                    {"cases", t.cases},
                    {"attest", t.attest},
                    {"commit", t.commit}});
  }
  const OrderedJson whole = {{"kind", kKind}, {"schema", kSchema}, {"tuned", list}};
  out << whole.dump(1, ' ', false, OrderedJson::error_handler_t::replace) << '\n';
}

}  // namespace attest
