// The metadata of a case file, and the results that it holds beside the inputs.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "harness/cases/case.h"
#include "harness/cases/safetensors.h"

namespace attest {

/// Metadata by key. Complaints name the file.
class FileMetadata {
 public:
  /// Keeps references to both.
  FileMetadata(const TensorFile& file, const std::string& name) : file_(file), name_(name) {}
  /// Empty when there is none.
  std::string text(const std::string& key) const;
  /// Throws UserError when it is no finite number.
  double number(const std::string& key) const;
  /// The same of `value`, a part of the text under `key`.
  double number(const std::string& key, const std::string& value) const;

 private:
  const TensorFile& file_;
  const std::string& name_;
};

/// Every tensor that is none of `inputs`, with what the metadata say about how exact it is: tolerance,
/// relative_tolerance, producer. nullopt without such a tensor. Throws UserError.
std::optional<Golden> read_golden(const TensorFile& file, const std::string& name, const std::set<std::string>& inputs);

}  // namespace attest
