// A stranger's file made ready to be loaded as a plug-in, in a sandbox.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "harness/backends/isolation/isolation_options.h"
#include "harness/backends/isolation/stranger.h"
#include "harness/judge/submission_files.h"

namespace attest {

struct Submission {
  std::string content;                   ///< fingerprint of what is judged
  std::string source;                    ///< as Plugins takes it
  std::unique_ptr<ScratchFolder> files;  ///< a copy of it: nothing that lies beside it can be read in the sandbox
  std::unique_ptr<ScratchFolder> built;  ///< with the library, of what was compiled
};

/// What submission_files() takes: a library, C or C++, which a compiler in the sandbox makes one of, or Python with
/// :object behind it; without, the object is `attention` or else the only backend there. Throws UserError where there
/// is no such file, or no interpreter for it, and InvalidSubmission with the compiler's first error. `interpreter`: as
/// need_interpreter() takes it.
Submission prepare_submission(const std::string& path, const SandboxOptions& sandbox, std::chrono::milliseconds limit,
                              const std::string& interpreter = "");

/// Without :object behind a file of Python.
std::string file_of(const std::string& path);

/// The first line of a compiler's output that tells an error; "" without one.
std::string first_error(const std::string& output);

}  // namespace attest
