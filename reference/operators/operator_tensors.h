// The tensors that only some operators read or write.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "reference/arithmetic/producer.h"
#include "reference/call/call.h"
#include "reference/call/tensors.h"
#include "reference/options/option.h"

namespace attest {

/// An input besides q, k, v and what belongs to masks and caches.
struct ExtraInput {
  std::string_view name;
  ConstTensor Inputs::*place;
  std::array<Axis, 4> axes;  ///< as stored
  Index4 shape;              ///< as stored; axes of extent 1 are broadcast to `full`
  Index4 full;
  double low, high;  ///< case lines fill it with numbers in between
};
/// Those of this call.
std::vector<ExtraInput> extra_inputs(const Call& call);

/// All that any call may have.
std::vector<InputTensor> input_tensors();

/// What `out=present` asks for.
struct PresentOutput {
  std::string_view name;
  std::optional<MutableTensor> Outputs::*place;
  Index4 shape;
  bool copied;  ///< from inputs, bit for bit
};
std::vector<PresentOutput> present_outputs(const Call& call);

/// The elements of one present output in the order of its axes, and for each producer how far they may stray.
struct PresentValues {
  std::vector<double> values;
  std::vector<std::vector<double>> bounds;
};
PresentValues expect_present(const Call& call, const Inputs& inputs, const PresentOutput& output,
                             const std::vector<Producer>& producers);

/// k as a fill gives it, divided by this: the delta rules want keys of about unit length.
double key_divisor(const Call& call);

}  // namespace attest
