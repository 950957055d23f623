#include "harness/cases/file_golden.h"

#include <charconv>
#include <cmath>
#include <sstream>

#include "harness/base/text.h"
#include "harness/base/user_error.h"

namespace attest {

std::string FileMetadata::text(const std::string& key) const {
  const auto found = file_.metadata.find(key);
  return found == file_.metadata.end() ? "" : found->second;
}

double FileMetadata::number(const std::string& key) const { return number(key, text(key)); }

double FileMetadata::number(const std::string& key, const std::string& value) const {
  double number = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || stop != value.data() + value.size() || !std::isfinite(number)) {
    throw UserError(name_ + ": metadata " + key + " \"" + value.substr(0, 40) + "\" is not a finite number");
  }
  return number;
}

namespace {

/// "float32 accumulation, q scaled before the product, exp within 4 ulps (assumed), IEEE division"
std::optional<Arithmetic> read_producer(const std::string& text, const std::string& name) {
  if (text.empty()) return std::nullopt;
  Arithmetic a;
  a.normalised_before_storage = true;
  if (text.find("float64 accumulation") != std::string::npos)
    a.accumulator = a.stored_weights = DType::f64;
  else if (text.find("float32 accumulation") == std::string::npos) {
    throw UserError(name + ": metadata producer does not say \"float32 accumulation\" or \"float64 accumulation\"");
  }
  if (const std::size_t at = text.find("exp within "); at != std::string::npos) {
    double ulps = 0;
    const char* from = text.data() + at + 11;
    if (std::from_chars(from, text.data() + text.size(), ulps).ec == std::errc() && ulps > 0 && ulps < 1e6) {
      a.exp_ulps = a.log_ulps = ulps;
    } else {
      throw UserError(name + ": metadata producer: \"exp within N ulps\" is wanted");
    }
  }
  return a;
}

}  // namespace

std::optional<Golden> read_golden(const TensorFile& file, const std::string& name,
                                  const std::set<std::string>& inputs) {
  const FileMetadata metadata(file, name);
  const auto tolerance = [&](const std::string& key) -> std::optional<double> {
    if (metadata.text(key).empty()) return std::nullopt;
    const double value = metadata.number(key);
    if (!(value >= 0)) throw UserError(name + ": metadata " + key + " is negative");
    return value;
  };
  Golden golden;
  for (const auto& [key, tensor] : file.tensors) {
    if (!inputs.contains(key)) golden.stages.emplace(key, tensor);
  }
  golden.about = printable(metadata.text("about").empty() ? metadata.text("origin") : metadata.text("about"));
  golden.tolerance = tolerance("tolerance");
  golden.relative = tolerance("relative_tolerance").value_or(0);
  std::istringstream tolerances(metadata.text("tolerances"));
  for (std::string entry; tolerances >> entry;) {
    const std::size_t equals = entry.find('=');
    const std::string stage = entry.substr(0, equals);
    if (equals == std::string::npos || !golden.stages.contains(stage)) {
      throw UserError(name + ": metadata tolerances \"" + entry.substr(0, 40) +
                      "\": stage=number is wanted, for a stage that the file holds");
    }
    const double value = metadata.number("tolerances " + stage, entry.substr(equals + 1));
    if (!(value >= 0)) throw UserError(name + ": metadata tolerances " + stage + " is negative");
    golden.stage_tolerances[stage] = value;
  }
  golden.producer = read_producer(metadata.text("producer"), name);
  std::istringstream tokens(metadata.text("tokens"));
  for (std::string token; tokens >> token;) golden.tokens.push_back(printable_line(token));
  if (golden.stages.empty()) return std::nullopt;
  if (!golden.tolerance && !golden.producer) {
    throw UserError(name + ": it holds results (" + golden.stages.begin()->first +
                    ") but neither metadata tolerance nor producer says how exact they are");
  }
  return golden;
}

}  // namespace attest
