// A small language model from tokens to loss, for `attest trace language_model`: what stands around attention, with the
// core run by the reference or by any backend.
#pragma once

#include <string>

#include "backends/backend.h"
#include "reference/transformer.h"

namespace attest {

struct LanguageModelSettings {
  std::string text = "the cat sat on the mat";
  bool pre_norm = true, sinusoidal = true;
  Activation activation = Activation::gelu;
};

/// A backend as the core of multi_head_attention, in `dtype`. Throws BackendError when it refuses.
AttentionCore core_of(Backend& backend, DType dtype);

/// Prints every stage. With a backend, its loss stands beside the reference's.
void trace_language_model(const LanguageModelSettings& settings, Backend* backend);

}  // namespace attest
