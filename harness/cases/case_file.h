// Cases from .safetensors files.
#pragma once

#include <filesystem>
#include <string>

#include "harness/cases/case.h"
#include "harness/cases/safetensors.h"

namespace attest {

/// Tensors q, k, v; optional mask, past_k, past_v, keep; cu_seqlens_q and cu_seqlens_k (layout thd); page_table (k and
/// v are then pages); decay, beta, past_state (linear attention); stages. Metadata scale,
/// layout, heads, kv_heads, options (a case line without sizes), tolerance, relative_tolerance, producer, about.
Case case_from_file(const std::filesystem::path& path);
/// The same of a file in memory; `name` stands in messages.
Case case_from_tensors(TensorFile file, const std::string& name);
}  // namespace attest
