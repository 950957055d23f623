// A small language model from tokens to loss, for `attest trace language_model`: what stands around attention, with the
// core run by the reference or by any backend.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/trace/stage.h"
#include "reference/transformer.h"

namespace attest {

struct LanguageModelSettings {
  std::string text = "the cat sat on the mat";
  bool pre_norm = true, sinusoidal = true;
  Activation activation = Activation::gelu;
  int blocks = 1;
};

/// A backend as the core of multi_head_attention, in `dtype`. Throws BackendError when it refuses.
AttentionCore core_of(Backend& backend, DType dtype);

struct LanguageModelTrace {
  std::string summary;
  std::vector<Stage> stages;
  double loss_sum = 0, loss_mean = 0;  ///< of -log p over every word but the first
  double guessing = 0;                 ///< the mean loss of equal chances
  struct OfBackend {
    std::string name;
    double loss_mean = 0;
  };
  std::optional<OfBackend> backend;
};

/// With a backend, its loss stands beside the reference's.
LanguageModelTrace trace_language_model(const LanguageModelSettings& settings, Backend* backend);

void print_language_model(const LanguageModelTrace& trace, int digits);
std::string language_model_json(const LanguageModelTrace& trace);

}  // namespace attest
