#include "harness/run/bundle.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/backends/isolation/arithmetic_json.h"
#include "harness/base/json_fields.h"
#include "harness/base/machine.h"
#include "harness/base/schema.h"
#include "harness/base/text_file.h"
#include "harness/base/user_error.h"
#include "harness/comparison/compare.h"
#include "harness/comparison/expectation.h"
#include "harness/report/verdict_json.h"
#include "harness/run/stored_order.h"

namespace attest {
namespace {

constexpr int kSchema = 1;
constexpr std::uintmax_t kMostListBytes = std::uintmax_t{1} << 30;
constexpr std::size_t kMostLine = std::size_t{1} << 20;

double bytes_of(const Case& source) {
  double bytes = 0;
  for (const TensorId id : inputs_of(source.problem)) {
    const DType type = type_of(source.problem, id);
    bytes += static_cast<double>(bytes_of(type, static_cast<std::size_t>(StoredOrder(source.problem, id).size())));
  }
  for (const TensorId id : results_of(source.problem))
    bytes += static_cast<double>(StoredOrder(source.problem, id).size()) * 2 * sizeof(double);
  return bytes;
}

FileTensor numbers(const std::vector<std::int64_t>& shape, std::span<const double> values) {
  FileTensor tensor{"F64", shape, {}};
  const auto bytes = std::as_bytes(values);
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return tensor;
}

OrderedJson to_json(const BundleCase& one) {
  OrderedJson results = OrderedJson::array();
  for (const BundleResult& result : one.results)
    results.push_back({{"name", result.name}, {"dtype", result.dtype}, {"shape", result.shape}});
  return {{"kind", "case"},   {"number", one.number}, {"suite", one.suite}, {"case", one.line},
          {"file", one.file}, {"bytes", one.bytes},   {"results", results}};
}

BundleCase case_from_json(const OrderedJson& json, const std::string& place) {
  const JsonFields fields(json, place);
  BundleCase one;
  one.number = fields.count("number");
  one.suite = fields.text("suite");
  one.line = fields.text("case");
  one.file = fields.text("file");
  one.bytes = fields.number("bytes");
  // A name, no path: a list that leads out of its folder is none of ours.
  if (one.file.empty() || one.file.find('/') != std::string::npos) fields.fail("\"file\" is no name of a file");
  std::size_t number = 0;
  for (const OrderedJson& result : fields.list("results")) {
    const JsonFields of(result, fields.place_in("results", number++));
    BundleResult read{of.text("name"), of.text("dtype"), {}};
    if (!find_file_type(read.dtype)) of.fail("\"dtype\" is no type of a tensor");
    for (const std::size_t extent : of.counts("shape")) read.shape.push_back(static_cast<std::int64_t>(extent));
    if (read.shape.size() > std::tuple_size_v<Index4>) of.fail("\"shape\" has more axes than a result can have");
    one.results.push_back(std::move(read));
  }
  if (one.results.empty()) fields.fail("it has no results");
  return one;
}

OrderedJson parse_line(const std::string& line, const std::string& place) {
  OrderedJson json = OrderedJson::parse(line, nullptr, false);
  if (!json.is_object()) throw UserError(place + ": no JSON object; is it a file of attest export?");
  return json;
}

}  // namespace

double Bundle::bytes() const {
  double sum = 0;
  for (const BundleCase& one : cases) sum += one.bytes;
  return sum;
}

std::string Bundle::text() const {
  const OrderedJson header = {{"kind", "bundle"},       {"schema", kSchema},     {"attest", attest}, {"commit", commit},
                              {"stated_by", stated_by}, {"cases", cases.size()}, {"bytes", bytes()}};
  std::string text = header.dump() + "\n";
  for (const BundleCase& one : cases) text += to_json(one).dump() + "\n";
  return text;
}

Bundle read_bundle(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kBundleList;
  if (!std::filesystem::exists(path)) {
    throw UserError(
        fmt::format("{}: no bundle, since it has no {}; attest export writes one", folder.string(), kBundleList));
  }
  std::ifstream file = open_text(path, kMostListBytes);
  Bundle bundle;
  Line line;
  std::size_t number = 0, wanted = 0;
  while (read_line(file, line, kMostLine)) {
    const std::string place = fmt::format("{}:{}", path.string(), ++number);
    if (line.too_long) throw UserError(place + ": the line is longer than any that attest writes");
    const OrderedJson json = parse_line(line.text, place);
    const JsonFields fields(json, place);
    if (number > 1) {
      bundle.cases.push_back(case_from_json(json, place));
      continue;
    }
    if (fields.text("kind") != "bundle") fields.fail("it does not begin with a line of kind \"bundle\"");
    require_schema(place, json.contains("schema") ? json["schema"].dump() : "", kSchema);
    bundle.attest = fields.text("attest");
    bundle.commit = fields.text("commit");
    bundle.stated_by = fields.text("stated_by");
    wanted = fields.count("cases");
  }
  if (bundle.cases.size() != wanted || wanted == 0) {
    throw UserError(
        fmt::format("{}: {} of {} cases; attest export writes it anew", path.string(), bundle.cases.size(), wanted));
  }
  return bundle;
}

BundleCase describe(const Case& source, std::size_t number, const std::string& suite) {
  BundleCase one{number, suite, source.label, fmt::format("{:05}.safetensors", number), bytes_of(source), {}};
  for (const TensorId id : results_of(source.problem)) {
    one.results.push_back({std::string(row_of(id).name), file_type_of(type_of(source.problem, id)),
                           StoredOrder(source.problem, id).shape()});
  }
  return one;
}

TensorFile bundle_file(const Case& source, const Answers& stated, int threads) {
  const Problem& problem = source.problem;
  const CaseInputs inputs = make_inputs(problem, threads);
  const Inputs views = inputs.views();
  TensorFile file;
  file.metadata["case"] = source.label;
  file.metadata["arithmetic"] = nlohmann::json(stated.arithmetic).dump();
  for (const TensorId id : inputs.list())
    file.tensors[std::string(row_of(id).name)] = stored_tensor(problem, id, views.at(id));

  const Expectation expected = expect(problem, views, {{stated.arithmetic, {}}}, threads, kInfinity);
  struct Lists {
    StoredOrder order;
    std::vector<double> values, bounds;
  };
  std::map<TensorId, Lists> lists;
  for (const TensorId id : results_of(problem)) {
    const StoredOrder order(problem, id);
    const auto size = static_cast<std::size_t>(order.size());
    lists.emplace(id, Lists{order, std::vector<double>(size, kNaN), std::vector<double>(size, kInfinity)});
  }
  each_result(problem, expected, expected.bounds.front(), GuardedOutputs(problem),
              [&](const TensorRow& result, const Index4& at, double, double value, double bound) {
                Lists& list = lists.at(result.id);
                const std::size_t n = list.order.at(at[0], at[1], at[2], at[3]);
                list.values[n] = value;
                list.bounds[n] = bound;
              });
  for (const auto& [id, list] : lists) {
    const std::string name(row_of(id).name);
    file.tensors["expected." + name] = numbers(list.order.shape(), list.values);
    file.tensors["bound." + name] = numbers(list.order.shape(), list.bounds);
  }
  return file;
}

}  // namespace attest
