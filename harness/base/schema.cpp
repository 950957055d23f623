#include "harness/base/schema.h"

#include <fmt/format.h>

#include <cstdlib>

#include "harness/base/text.h"
#include "harness/base/user_error.h"

namespace attest {

void require_schema(const std::string& name, const std::string& schema, int newest) {
  const bool number = !schema.empty() && schema.find_first_not_of("0123456789") == std::string::npos;
  const long version = number ? std::strtol(schema.c_str(), nullptr, 10) : 0;
  if (version < 1) {
    throw UserError(
        fmt::format("{}: schema \"{}\"; a number from 1 to {} is wanted", name, printable_line(schema), newest));
  }
  if (version > newest) {
    throw UserError(fmt::format("{}: schema {} of a newer attest; this one reads up to {}", name, schema, newest));
  }
}

}  // namespace attest
