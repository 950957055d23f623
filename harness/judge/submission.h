// A stranger's file made ready to be loaded as a plug-in, in a sandbox.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "harness/backends/isolation/isolation_options.h"
#include "harness/backends/isolation/stranger.h"
#include "harness/judge/submission_files.h"

namespace attest {

/// A copy of what is judged: nothing that lies beside the original can be read in the sandbox.
struct Submission {
  std::string content;  ///< fingerprint of the copy
  std::string object;   ///< of Python, with the colon before it
  bool into = false;    ///< of a solution: arrays for its outputs come behind the arguments
  SubmissionFiles files;
  std::unique_ptr<ScratchFolder> folder;
};

/// What submission_files() takes: a library, C or C++, or Python with :object behind it; without, the object is
/// `attention` or else the only backend there. Throws UserError where there is no such file, or no interpreter for it;
/// InvalidSubmission. `interpreter`: as need_interpreter() takes it.
Submission take_submission(const std::string& path, const std::string& interpreter = "");

struct LoadableSubmission {
  std::string source;                    ///< as Plugins takes it
  std::unique_ptr<ScratchFolder> built;  ///< with the library, of what was compiled
};

/// C and C++ are compiled, by a compiler in the sandbox. `call`: how the task's board calls what is in its own format;
/// empty: it has none. The submission outlives what is returned. Throws InvalidSubmission with the compiler's first
/// error.
LoadableSubmission made_loadable(const Submission& submission, const std::string& call, const SandboxOptions& sandbox,
                                 std::chrono::milliseconds limit);

/// The first line of a compiler's output that tells an error; "" without one.
std::string first_error(const std::string& output);

}  // namespace attest
