// Results that a file holds: each stage is compared, at its own tolerance.
#include "harness/verdict/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "harness/base/data_folder.h"
#include "harness/cases/case_file.h"
#include "harness/search/shrink_file.h"
#include "tests/unit/complaint.h"
#include "tests/unit/helpers.h"

namespace attest {
namespace {

Case walkthrough(const std::string& name) {
  return case_from_file(data_folder("golden") / "walkthroughs" / (name + ".safetensors"));
}

/// Each stage of a file that only this comparison reads: a change of one element is seen.
TEST(Walkthroughs, AWrongStageIsFound) {
  const auto fails = [](const std::string& file, const std::string& name, double change) {
    Case source = walkthrough(file);
    FileTensor& tensor = source.golden->stages.at(name);
    double value = tensor.at(0) + change;
    std::memcpy(tensor.bytes.data(), &value, sizeof value);
    const CaseInputs inputs = *source.inputs;
    return GoldenCheck(source, inputs.views()).compare_reference().failed();
  };
  EXPECT_FALSE(fails("three_tokens", "hidden", 0));
  EXPECT_TRUE(fails("three_tokens", "hidden", 1));
  EXPECT_TRUE(fails("first_principles_causal", "added", 1));
  EXPECT_TRUE(fails("first_principles", "statistics", 1e-8));
  EXPECT_TRUE(fails("first_principles", "score_row_sums", 2e-8));
  EXPECT_TRUE(fails("first_principles", "output", 2e-8));
  // One with a tolerance of its own.
  EXPECT_FALSE(fails("scale_mask_softmax", "raw_scores", 0.002));
  EXPECT_TRUE(fails("scale_mask_softmax", "raw_scores", 0.02));
  EXPECT_TRUE(fails("scale_mask_softmax", "variance_before", 0.02));
}

TEST(Walkthroughs, ATolerancePerStageIsChecked) {
  const auto with = [](const std::string& tolerances) {
    TensorFile file = read_safetensors(data_folder("golden") / "walkthroughs" / "scale_mask_softmax.safetensors");
    file.metadata["tolerances"] = tolerances;
    return complaint([&] { case_from_tensors(file, "file"); });
  };
  EXPECT_EQ(with("weights=0.5"), "");
  EXPECT_NE(with("nothing=0.5"), "");
  EXPECT_NE(with("weights"), "");
  EXPECT_NE(with("weights=-1"), "");
  EXPECT_NE(with("weights=x"), "");
}

/// A file of the line's data with the reference's gradients, in float64.
TensorFile with_gradients(const std::string& line) {
  TensorFile file = *plain_file(case_from_line(line));
  const Case source = case_from_tensors(file, "file");
  const CaseInputs inputs = *source.inputs;
  const Expectation e = expect(source.problem, inputs.views(), {}, 1, kInfinity);
  for (const TensorId id : outputs_of(source.problem)) {
    if (!is_gradient(*row_of(id).result)) continue;
    const Index4 shape = seen_shape(source.problem, id);
    FileTensor& tensor = file.tensors[std::string(name_of(id))];
    tensor = {"F64", {shape.begin(), shape.end()}, {}};
    tensor.bytes.resize(e.of(id).size() * sizeof(double));
    std::memcpy(tensor.bytes.data(), e.of(id).data(), tensor.bytes.size());
  }
  file.metadata["tolerance"] = "1e-9";
  return file;
}

/// B,L,H,D of B,H,L,D.
FileTensor positions_first(const FileTensor& tensor) {
  const Index4 n = {tensor.shape[0], tensor.shape[1], tensor.shape[2], tensor.shape[3]};
  FileTensor turned = {tensor.dtype, {n[0], n[2], n[1], n[3]}, tensor.bytes};
  const auto size = static_cast<std::int64_t>(tensor.bytes.size()) / std::max<std::int64_t>(tensor.size(), 1);
  std::int64_t from = 0;
  each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    const std::int64_t to = ((b * n[2] + l) * n[1] + h) * n[3] + d;
    std::copy_n(tensor.bytes.begin() + from++ * size, size, turned.bytes.begin() + to * size);
  });
  return turned;
}

bool reference_agrees(const TensorFile& file) {
  const Case source = case_from_tensors(file, "file");
  const CaseInputs inputs = *source.inputs;
  return !GoldenCheck(source, inputs.views()).compare_reference().failed();
}

Status status_of_example(const TensorFile& file) {
  const BackendSet backends(registered_backends(), {"example"}, {1, ""});
  const Case source = case_from_tensors(file, "file");
  return PreparedCase(source, backends.all(), 1).check(*backends.all().front()).status;
}

TEST(Golden, GradientsOfAFileAreCompared) {
  const std::string all = "dq,dk,dv,dmask,dsinks";
  for (const std::string& line :
       {"pass=backward batch=2 heads=4/2 seq=5x7 dim=3/2 mask=add:1HQ1:normal sinks dlse out=" + all,
        "pass=both dtype=f64 heads=2 seq=3x9 dim=4 past=5 mask=add:1H1K:normal sinks out=o," + all}) {
    for (const bool turned : {false, true}) {
      TensorFile file = with_gradients(line);
      if (turned && file.tensors.contains("past_k")) continue;  // which layouts leave as they are
      for (const char* name : {"q", "k", "v", "do", "dq", "dk", "dv"}) {
        if (turned) file.tensors.at(name) = positions_first(file.tensors.at(name));
      }
      if (turned) file.metadata["layout"] = "blhd";
      EXPECT_TRUE(reference_agrees(file)) << line;
      EXPECT_EQ(status_of_example(file), Status::pass) << line;
      for (const char* name : {"dq", "dk", "dv", "dmask", "dsinks"}) {
        TensorFile wrong = file;
        FileTensor& tensor = wrong.tensors.at(name);
        store(tensor.bytes.data(), DType::f64, tensor.size() - 1, tensor.at(tensor.size() - 1) + 0.01);
        EXPECT_FALSE(reference_agrees(wrong)) << line << " " << name;
        wrong.metadata["tolerance"] = "0.02";
        EXPECT_TRUE(reference_agrees(wrong)) << line << " " << name;
        tensor.shape.back() += 1;
        tensor.bytes.resize(static_cast<std::size_t>(tensor.size()) * sizeof(double));
        EXPECT_THROW(reference_agrees(wrong), UserError) << line << " " << name;
      }
    }
  }
}

TEST(Golden, ABooleanMaskHasNoGradient) {
  TensorFile file = with_gradients("pass=backward seq=3 dim=2 mask=bool:11QK:random(0.5)");
  EXPECT_TRUE(reference_agrees(file));
  file.tensors["dmask"] = {"F32", {1, 1, 3, 3}, std::vector<std::byte>(36)};
  const std::string text = complaint([&] { case_from_tensors(file, "file"); });
  EXPECT_NE(text.find("tensor \"dmask\""), std::string::npos) << text;
}

/// A producer's gradients have its bound.
TEST(Golden, GradientsOfAProducerHaveItsBound) {
  TensorFile file = with_gradients("pass=backward heads=2 seq=9 dim=8 causal");
  file.metadata.erase("tolerance");
  file.metadata["producer"] = "float32 accumulation";
  FileTensor& dq = file.tensors.at("dq");
  const double value = dq.at(40);
  EXPECT_TRUE(reference_agrees(file));
  store(dq.bytes.data(), DType::f64, 40, value * (1 + 1e-7) + 1e-8);
  EXPECT_TRUE(reference_agrees(file));
  store(dq.bytes.data(), DType::f64, 40, value + 1e-3);
  EXPECT_FALSE(reference_agrees(file));
}

/// Activations of a real model.
Case capture(const std::string& name) {
  return case_from_file(data_folder("golden") / "captures" / (name + ".safetensors"));
}

bool holds(const Case& source) {
  const CaseInputs inputs = *source.inputs;
  return !GoldenCheck(source, inputs.views()).compare_reference().failed();
}

void change(FileTensor& tensor, std::int64_t at, float by) {
  float value = 0;
  std::memcpy(&value, tensor.bytes.data() + static_cast<std::size_t>(at) * sizeof value, sizeof value);
  value += by;
  std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(at) * sizeof value, &value, sizeof value);
}

/// Every stage of a file with a producer has that producer's bound: the model's own float32 stages lie within it, and
/// a change beyond it is seen.
TEST(Captures, EveryStageHasTheBoundOfItsProducer) {
  for (const std::string name : {"sentences_layer0", "chains_decoder_self", "chains_decoder_cross"}) {
    const Case source = capture(name);
    EXPECT_TRUE(source.golden->producer) << name;
    EXPECT_TRUE(holds(source)) << name;
    for (const auto& [stage, tensor] : source.golden->stages) {
      Case changed = source;
      change(changed.golden->stages.at(stage), 0, 2e-2f);
      EXPECT_FALSE(holds(changed)) << name << " " << stage;
    }
  }
}

FileTensor floats(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  FileTensor tensor;
  tensor.dtype = "F32";
  tensor.shape = std::move(shape);
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

std::vector<float> numbers(const FileTensor& tensor) {
  std::vector<float> values;
  for (std::int64_t n = 0; n < tensor.size(); ++n) values.push_back(static_cast<float>(tensor.at(n)));
  return values;
}

/// The mean, and the sum of the squared distances from it.
std::pair<float, float> mean_and_squares(const std::vector<float>& values) {
  float total = 0, squares = 0;
  for (const float value : values) total += value;
  const float mean = total / static_cast<float>(values.size());
  for (const float value : values) squares += (value - mean) * (value - mean);
  return {mean, squares};
}

/// What is computed from the stages, in float32 as a model's code would: sums, variances, logsumexp and unscaled
/// scores.
TEST(Captures, WhatIsComputedFromStagesHasABoundToo) {
  Case source = capture("chains_decoder_cross");
  const FileTensor raw = source.golden->stages.at("raw"), weights = source.golden->stages.at("weights");
  const std::int64_t rows = 8, keys = raw.size() / rows;
  const auto at = [&](const FileTensor& tensor, std::int64_t r, std::int64_t j) {
    return static_cast<float>(tensor.at(r * keys + j));
  };
  std::vector<float> row_sums, score_sums, column_sums(static_cast<std::size_t>(keys)), unscaled, lse;
  for (std::int64_t r = 0; r < rows; ++r) {
    float weight_sum = 0, score_sum = 0, exp_sum = 0, max = -INFINITY;
    const auto seen = [&](std::int64_t j) { return at(weights, r, j) > 0; };
    for (std::int64_t j = 0; j < keys; ++j) max = seen(j) ? std::max(max, at(raw, r, j)) : max;
    for (std::int64_t j = 0; j < keys; ++j) {
      weight_sum += at(weights, r, j);
      score_sum += at(raw, r, j);
      column_sums[static_cast<std::size_t>(j)] += at(raw, r, j);
      unscaled.push_back(at(raw, r, j) / static_cast<float>(source.problem.call.scale_value()));
      exp_sum += seen(j) ? std::exp(at(raw, r, j) - max) : 0;
    }
    lse.push_back(max + std::log(exp_sum));
    row_sums.push_back(weight_sum);
    score_sums.push_back(score_sum);
  }
  auto& stages = source.golden->stages;
  stages["lse"] = floats({rows}, lse);
  stages["row_sums"] = floats({rows}, row_sums);
  stages["score_row_sums"] = floats({rows}, score_sums);
  stages["score_column_sums"] = floats({keys}, column_sums);
  stages["variance_after"] = floats({1}, {mean_and_squares(numbers(raw)).second / static_cast<float>(rows * keys - 1)});
  stages["variance_before"] = floats({1}, {mean_and_squares(unscaled).second / static_cast<float>(rows * keys - 1)});
  std::vector<float> statistics;
  for (const ConstTensor& tensor :
       {source.inputs->views().q(), source.inputs->views().k(), source.inputs->views().v()}) {
    std::vector<float> values;
    each_index(tensor.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      values.push_back(static_cast<float>(load(tensor.data, tensor.dtype, tensor.offset(b, h, l, d))));
    });
    const auto [mean, squares] = mean_and_squares(values);
    const float variance = squares / static_cast<float>(values.size());
    statistics.insert(statistics.end(), {mean, variance, std::sqrt(variance)});
  }
  stages["statistics"] = floats({9}, statistics);
  stages["raw_scores"] = floats(raw.shape, unscaled);
  for (const auto& [stage, tensor] : stages) {
    Case alone = source;
    alone.golden->stages = {{stage, tensor}};
    EXPECT_TRUE(holds(alone)) << stage;
  }
  for (const auto& [stage, by] :
       {std::pair{"row_sums", 1e-2f}, std::pair{"score_row_sums", 1.0f}, std::pair{"score_column_sums", 1.0f},
        std::pair{"variance_after", 0.5f}, std::pair{"raw_scores", 1e-2f}, std::pair{"lse", 1e-2f},
        std::pair{"variance_before", 16.0f}, std::pair{"statistics", 1.0f}}) {
    for (std::int64_t n = 0; n < std::min<std::int64_t>(stages.at(stage).size(), 9); ++n) {
      Case changed = source;
      change(changed.golden->stages.at(stage), n, by);
      EXPECT_FALSE(holds(changed)) << stage << " " << n;
    }
  }
}

/// Slopes times distances, and a mask, added in float32.
TEST(Captures, WhatIsAddedToScoresHasABoundToo) {
  TensorFile file =
      *plain_file(case_from_line("heads=2 seq=3x5 dim=2 mask=add:11QK:normal alibi=0.3,0.7 align=top-left"));
  const FileTensor& mask = file.tensors.at("mask");
  std::vector<float> added;
  for (const float slope : {0.3f, 0.7f}) {
    for (std::int64_t n = 0; n < 15; ++n) {
      const std::int64_t distance = std::abs(n / 5 - n % 5);
      added.push_back(static_cast<float>(mask.at(n)) - slope * static_cast<float>(distance));
    }
  }
  file.tensors["added"] = floats({1, 2, 3, 5}, added);
  file.metadata["producer"] = "float32 accumulation";
  const Case source = case_from_tensors(file, "file");
  EXPECT_TRUE(holds(source));
  for (std::int64_t n = 0; n < 30; ++n) {
    Case changed = source;
    change(changed.golden->stages.at("added"), n, 1e-5f);
    EXPECT_FALSE(holds(changed)) << n;
  }
}

}  // namespace
}  // namespace attest
