// The weights of one query in sentences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference/softmax/attention.h"

namespace attest {

struct ReadableRows {
  const std::vector<std::string>&queries, &keys;
  const std::vector<Row>& rows;
  const std::vector<std::vector<double>>& hidden;  ///< 1 where a query does not see a key
};

/// Of row `asked`, else of the one whose weights are the least even.
std::string read_row(const ReadableRows& rows, const std::optional<std::size_t>& asked);

}  // namespace attest
