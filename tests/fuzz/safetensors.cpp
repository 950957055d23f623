// libFuzzer target: any bytes are a tensor file or get one sentence; what was read can be looked at.
#include "harness/cases/safetensors.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "harness/base/user_error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    const TensorFile file = parse_safetensors({bytes, bytes + size}, "fuzz");
    for (const auto& [name, tensor] : file.tensors) {
      if (tensor.size() < 0) std::abort();
      for (std::int64_t n = 0; n < tensor.size(); n += tensor.size() / 16 + 1) (void)tensor.at(n);
      (void)tensor.shape_text();
    }
  } catch (const UserError& error) {
    if (error.what()[0] == '\0') std::abort();
  }
  return 0;
}
