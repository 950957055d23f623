// libFuzzer target: any text is a case line or gets one sentence with a column inside it; a line prints and parses back
// to itself, and is no larger than what storage can hold.
#include "reference/options/case_line.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "reference/call/tensor_place.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace attest;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try {
    const Problem problem = parse_case(line);
    const std::string printed = print_case(problem);
    const Problem again = parse_case(printed);
    if (again != problem || print_case(again) != printed) std::abort();
    if (parse_case(print_call(problem)).call != problem.call) std::abort();
    for (TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::out}) {
      if (!place_of(problem, id).elements) std::abort();
    }
  } catch (const CaseError& error) {
    if (error.column() < 1 || error.column() > size + 1 || error.what()[0] == '\0') std::abort();
  }
  return 0;
}
