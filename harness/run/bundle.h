// A bundle: a folder of files that hold inputs, expected values and a bound for each element, for implementations that
// attest can't run. harness/FILES.md describes the files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/cases/case.h"
#include "harness/verdict/answers.h"

namespace attest {

inline constexpr const char* kBundleList = "bundle.jsonl";

/// A result of a case, as its file and an answer hold it.
struct BundleResult {
  std::string name;   ///< of the table of tensors: o, lse, ...
  std::string dtype;  ///< of the call, as a file names types: F32, BF16, ...
  std::vector<std::int64_t> shape;
};

/// A case of a bundle, known without reading its file.
struct BundleCase {
  std::size_t number = 0;  ///< in the bundle, from 1
  std::string suite;       ///< empty for cases of the command line
  std::string line;
  std::string file;  ///< its name in the folder, and that of the answer
  double bytes = 0;  ///< of tensors
  std::vector<BundleResult> results;
};

struct Bundle {
  std::string attest, commit;  ///< of the program that wrote it
  std::string stated_by;       ///< the backend whose arithmetic gives the bounds
  std::vector<BundleCase> cases;

  double bytes() const;
  /// The file `bundle.jsonl`: a header, then a line for each case.
  std::string text() const;
};

/// Reads `folder`/bundle.jsonl. Throws UserError, in one line, for what is no bundle of this schema.
Bundle read_bundle(const std::filesystem::path& folder);

/// What a bundle says of a case.
BundleCase describe(const Case& source, std::size_t number, const std::string& suite);

/// The file of a case: its inputs by name, `expected.RESULT` and `bound.RESULT` in F64. Elements that are not compared,
/// such as keys that no sequence has, have an infinite bound. Runs the reference over all rows.
TensorFile bundle_file(const Case& source, const Answers& stated, int threads);

}  // namespace attest
