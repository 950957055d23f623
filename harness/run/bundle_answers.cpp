#include "harness/run/bundle_answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/comparison/compare.h"

namespace attest {
namespace {

/// The last axes of a shape of up to four; the first ones have index 0.
Index4 index_in(const std::vector<std::int64_t>& shape, std::int64_t element) {
  Index4 index{};
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[4 - (shape.size() - axis)] = element % shape[axis];
    element /= shape[axis];
  }
  return index;
}

const FileTensor& tensor_of(const TensorFile& file, const std::string& name, const std::filesystem::path& path) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end()) throw UserError(path.string() + ": tensor \"" + name + "\" is missing");
  return found->second;
}

/// Types whose values a result may have been converted to: those that hold all of its own.
bool may_hold(const std::string& type, const std::string& given) {
  return given == type || given == "F64" || (given == "F32" && type != "F64");
}

/// The result, if the file has it as the bundle says; else UserError.
const FileTensor& answer_of(const TensorFile& file, const BundleResult& result, const std::filesystem::path& path) {
  const FileTensor& answer = tensor_of(file, result.name, path);
  const FileTensor wanted{result.dtype, result.shape, {}};
  if (answer.shape != result.shape) {
    throw UserError(fmt::format("{}: {} has shape {}; {} is wanted", path.string(), result.name, answer.shape_text(),
                                wanted.shape_text()));
  }
  if (!may_hold(result.dtype, answer.dtype)) {
    throw UserError(fmt::format("{}: {} is {}; {} or a wider type is wanted", path.string(), result.name, answer.dtype,
                                result.dtype));
  }
  return answer;
}

/// What is expected of a result, from the bundle's own file.
struct Expected {
  const BundleResult& result;
  const FileTensor& value;
  const FileTensor& bound;
};

std::vector<Expected> expected_of(const TensorFile& truth, const BundleCase& one, const std::filesystem::path& path) {
  std::vector<Expected> list;
  for (const BundleResult& result : one.results) {
    const FileTensor& value = tensor_of(truth, "expected." + result.name, path);
    const FileTensor& bound = tensor_of(truth, "bound." + result.name, path);
    if (value.shape != result.shape || bound.shape != result.shape || value.dtype != "F64" || bound.dtype != "F64")
      throw UserError(path.string() + ": " + result.name + " is not as " + kBundleList + " says");
    list.push_back({result, value, bound});
  }
  return list;
}

void compare(const Expected& expected, const FileTensor& answer, Comparison& comparison) {
  const BundleResult& result = expected.result;
  const std::size_t place = comparison.result(result.name, find_file_type(result.dtype)->stored.value_or(DType::f64));
  for (std::int64_t n = 0; n < expected.value.size(); ++n) {
    // An element that nothing is expected of.
    if (std::isnan(expected.value.at(n)) && expected.bound.at(n) == kInfinity) continue;
    comparison.element(place, index_in(result.shape, n), answer.at(n), expected.value.at(n), expected.bound.at(n));
  }
}

}  // namespace

Verdict verify(const std::filesystem::path& folder, const BundleCase& one, const std::filesystem::path& answers,
               Status missing) {
  Verdict verdict;
  verdict.suite = one.suite;
  verdict.case_line = one.line;
  verdict.number = static_cast<std::int64_t>(one.number);
  const std::filesystem::path truth_path = folder / one.file, path = answers / one.file;
  const TensorFile truth = read_safetensors(truth_path);
  const std::vector<Expected> expected = expected_of(truth, one, truth_path);
  if (!std::filesystem::exists(path)) {
    verdict.reason = "there is no " + one.file;
    verdict.status = missing;
    verdict.cause = {Cause::no_answer};
    return verdict;
  }
  Comparison comparison;
  try {
    const TensorFile given = read_safetensors(path);
    for (const Expected& of : expected) compare(of, answer_of(given, of.result, path), comparison);
  } catch (const UserError& error) {
    verdict.status = Status::fail;
    verdict.cause = {Cause::no_answer};
    verdict.reason = error.what();
    return verdict;
  }
  verdict.worst = comparison.worst();
  verdict.bias = comparison.biases();
  verdict.accuracy = comparison.accuracies();
  if (comparison.compared() > 0) verdict.error_over_bound = comparison.error_over_bound();
  verdict.status = comparison.inconclusive() ? Status::inconclusive : Status::pass;
  if (comparison.failed()) {
    verdict.status = Status::fail;
    verdict.cause = comparison.cause();
    verdict.reason = comparison.describe();
  } else if (verdict.status == Status::inconclusive) {
    verdict.reason = "the bounds are as large as the values in nearly all elements: nothing is proved";
  } else if (std::string little = little_proved(verdict.accuracy); !little.empty()) {
    verdict.status = Status::weak;
    verdict.reason = std::move(little);
  }
  return verdict;
}

}  // namespace attest
