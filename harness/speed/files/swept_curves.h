// What a sweep found, for the file of a benchmark: which of its cases are the points of a curve, and how the time grows
// along each.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace attest {

/// Time grows with a size to the power of this.
struct Growth {
  double exponent = 0, last = 0;  ///< of all points, and of the last two
  double from = 0, to = 0;        ///< sizes of the first and the last point
};

struct SweptCurve {
  std::string line;                      ///< the case line that was swept, as typed
  std::vector<std::string> cases;        ///< the case of each value, as samples are labelled
  std::map<std::string, Growth> growth;  ///< by backend; those with a speed at two values or more
};

struct SweptCurves {
  std::string key;           ///< of the case line: "seq"
  std::string before;        ///< what stands before each value: "1x" of "seq=1x128"
  std::vector<long> values;  ///< rising, above 0
  std::vector<SweptCurve> curves;
};

/// Where it stands in the context of a benchmark file.
inline constexpr const char* kSweepKey = "sweep";
nlohmann::ordered_json to_json(const SweptCurves& sweep);
/// Throws UserError, in one line that begins with `name`, where `json` is not what to_json gives.
SweptCurves swept_curves_from_json(const nlohmann::ordered_json& json, const std::string& name);

}  // namespace attest
