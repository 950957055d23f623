// libFuzzer target: a tensor file as a case. Metadata, shapes, index tensors and options may say anything.
#include "harness/cases/case_file.h"

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "harness/base/user_error.h"
#include "harness/cases/case.h"
#include "reference/options/case_line.h"
#include "reference/options/find_fault.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  try {
    const Case source = case_from_tensors(parse_safetensors({bytes, bytes + size}, "fuzz"), "fuzz");
    if (find_fault(source.problem) || !source.inputs) std::abort();
    (void)print_case(source.problem);
  } catch (const UserError& error) {
    if (error.what()[0] == '\0') std::abort();
  }
  return 0;
}
