// The first failures of a run that look different, made small.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "harness/cases/case.h"
#include "harness/verdict/verdict.h"

namespace attest {

class FailureShrinking {
 public:
  /// Failures of one backend with one cause look alike. Keeps references to both.
  void remember(const Case& source, Backend& backend, const Verdict& verdict);

  /// A few seconds for each. `found` is told every failure with the smallest case that fails like it, in a fresh
  /// backend if `fresh` makes one. A file's smallest case is written to `folder`; without one files are left alone. One
  /// that an earlier case caused shrinks with it; `case_named` finds that. `seconds_left`, where not empty: what is
  /// left for all of them.
  void shrink_all(int threads, const std::filesystem::path& folder,
                  const std::function<void(const Verdict& failure, const Verdict& small)>& found,
                  const std::function<std::unique_ptr<Backend>(const std::string& name)>& fresh = {},
                  const std::function<const Case*(const std::string& label)>& case_named = {},
                  const std::function<double()>& seconds_left = {});

  std::size_t unshrunk_files() const { return unshrunk_files_; }
  /// What could not be made smaller, a sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Failure {
    const Case* source;
    Backend* backend;
    Verdict verdict;
  };
  std::map<std::string, Failure> failures_;  ///< by backend and cause
  std::size_t unshrunk_files_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace attest
