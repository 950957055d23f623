// The files that a submission consists of, and the submissions that a folder holds.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace attest {

/// It can't be compiled, loaded or used: a sentence for its author.
struct InvalidSubmission : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class SubmissionKind { sources, library, python, solution };

struct SubmissionFiles {
  SubmissionKind kind = SubmissionKind::sources;
  std::filesystem::path root;               ///< absolute; of a single file its folder
  std::vector<std::filesystem::path> all;   ///< as seen from there, sorted
  std::vector<std::filesystem::path> main;  ///< what is compiled, or the one library or module
};

/// Of a file .c, .cc, .cpp, .so, .py or .json (solution.h), or of a folder. What a folder is judged by: its file called
/// submission, or else its only library or module, or all its sources of C and C++; files in folders below are there
/// for these. Links are left out. Throws UserError where there is no such file or folder, or a file is of another kind;
/// InvalidSubmission for a folder of which nobody can tell what it is, and one with too many bytes.
SubmissionFiles submission_files(const std::filesystem::path& path);

/// How a file or folder is called, whether it is there or not.
std::string name_of_submission(const std::filesystem::path& path);

/// Copies the files into a folder that exists.
void copy_submission(const SubmissionFiles& files, const std::filesystem::path& to);

/// Of names and contents: the same text for what is the same submission.
std::string fingerprint_of(const SubmissionFiles& files);

/// Whether a folder is one submission by itself: it has a file called submission, or only one source and no folders.
/// Every other folder holds submissions.
bool is_one_submission(const std::filesystem::path& folder);

/// What a folder of submissions holds, sorted by name: files that may be submissions, and folders. Hidden ones, links
/// and files of other kinds are none.
std::vector<std::filesystem::path> submissions_in(const std::filesystem::path& folder);

}  // namespace attest
