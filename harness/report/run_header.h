// The first line of a file of verdicts, in both directions.
#pragma once

#include "harness/report/run_info.h"
#include "harness/report/verdict_json.h"

namespace attest {

OrderedJson run_header_to_json(const RunInfo& info);
/// What is missing, or is of another type than run_header_to_json writes, is empty or 0, as are `cases` and `verdicts`,
/// which no header holds.
RunInfo run_header_from_json(const OrderedJson& header);

}  // namespace attest
