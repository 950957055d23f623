// A file of tensors as the parts of a case are read from it.
#pragma once

#include <string>

#include "harness/base/user_error.h"
#include "harness/cases/file_golden.h"
#include "harness/cases/safetensors.h"

namespace attest {

/// Keeps references to the file and its name, which complaints have in front: they outlive it.
class CaseSource {
 public:
  CaseSource(const TensorFile& file, const std::string& name)
      : file_(file), name_(name), page_table_(find("page_table")) {}

 protected:
  [[noreturn]] void fail(const std::string& message) const { throw UserError(name_ + ": " + message); }
  std::string metadata(const std::string& key) const { return FileMetadata(file_, name_).text(key); }
  double metadata_number(const std::string& key) const { return FileMetadata(file_, name_).number(key); }

  /// A tensor of numbers, which must be there.
  const FileTensor& floating(const std::string& key) const {
    const auto found = file_.tensors.find(key);
    if (found == file_.tensors.end()) fail("tensor \"" + key + "\" is missing; q, k and v are needed");
    if (!found->second.is_numeric()) {
      fail("tensor \"" + key + "\" has type " + found->second.dtype + "; F64, F32, F16, BF16, F8_E4M3, F8_E5M2 or I8");
    }
    return found->second;
  }

  /// nullptr where the file has none.
  const FileTensor* find(const std::string& key) const {
    const auto found = file_.tensors.find(key);
    return found == file_.tensors.end() ? nullptr : &found->second;
  }

  const TensorFile& file_;
  const std::string& name_;
  const FileTensor* page_table_;
};

}  // namespace attest
