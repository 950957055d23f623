// A stranger's file made ready to be loaded as a plug-in, in a sandbox.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

#include "harness/backends/isolation/isolation_options.h"
#include "harness/backends/isolation/stranger.h"

namespace attest {

/// It can't be compiled, loaded or used: a sentence for its author.
struct InvalidSubmission : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Submission {
  std::string source;                    ///< as Plugins takes it
  std::unique_ptr<ScratchFolder> built;  ///< with the library, of what was compiled
};

/// A shared library (.so), C or C++ (.c, .cc, .cpp), which a compiler in the sandbox makes one of, or Python (.py, with
/// :object behind it; without, :attention). Throws UserError where there is no such file, and InvalidSubmission with
/// the compiler's first error.
Submission prepare_submission(const std::string& path, const SandboxOptions& sandbox, std::chrono::milliseconds limit);

/// The first line of a compiler's output that tells an error; "" without one.
std::string first_error(const std::string& output);

}  // namespace attest
