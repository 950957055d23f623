// Codes with scales whose outputs come from ONNX's DequantizeLinear: what another layout of the scales would give is
// not what the files have.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "harness/base/data_folder.h"
#include "harness/cases/case_file.h"
#include "harness/cases/safetensors.h"
#include "harness/verdict/golden.h"

namespace attest {
namespace {

TensorFile golden(const std::string& name) {
  return read_safetensors(data_folder("golden") / "scales" / (name + ".safetensors"));
}

bool holds(const TensorFile& file) {
  const Case source = case_from_tensors(file, "file");
  const CaseInputs inputs = *source.inputs;
  return !GoldenCheck(source, inputs.views()).compare_reference().failed();
}

/// The scales as they lie where two neighbouring axes are stored the other way around; the shape stays.
TensorFile with_turned_axes(TensorFile file, const std::string& name, std::size_t first) {
  FileTensor& scales = file.tensors.at(name);
  const std::vector<std::int64_t>& n = scales.shape;
  std::int64_t outer = 1, inner = 1;
  for (std::size_t axis = 0; axis < first; ++axis) outer *= n[axis];
  for (std::size_t axis = first + 2; axis < 4; ++axis) inner *= n[axis];
  const std::int64_t rows = n[first], columns = n[first + 1];
  const auto bytes = static_cast<std::size_t>(inner) * sizeof(float);
  const std::vector<std::byte> from = scales.bytes;
  for (std::int64_t part = 0; part < outer; ++part) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const auto to = static_cast<std::size_t>((part * columns + c) * rows + r);
        const auto at = static_cast<std::size_t>((part * rows + r) * columns + c);
        std::memcpy(scales.bytes.data() + to * bytes, from.data() + at * bytes, bytes);
      }
    }
  }
  return file;
}

TEST(ScaleGoldens, TheReferenceReadsScalesAsOnnxDoes) {
  for (const std::string name : {"tensor_and_head", "head_and_token", "blocks", "short_last_block", "queries",
                                 "pages_of_blocks", "pages_of_tokens"})
    EXPECT_TRUE(holds(golden(name))) << name;
}

TEST(ScaleGoldens, ScalesInAnotherOrderAreFound) {
  for (const std::string name : {"blocks", "short_last_block", "pages_of_blocks"}) {
    for (const std::string scales : {"k_scales", "v_scales"})
      EXPECT_FALSE(holds(with_turned_axes(golden(name), scales, 2))) << name << ": blocks x tokens of " << scales;
  }
  // Pages in the layout NHD, with the scales of a token's heads side by side.
  EXPECT_FALSE(holds(with_turned_axes(golden("pages_of_blocks"), "k_scales", 1)));
  EXPECT_FALSE(holds(with_turned_axes(golden("head_and_token"), "v_scales", 1)));
}

}  // namespace
}  // namespace attest
