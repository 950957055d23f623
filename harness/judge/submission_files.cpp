#include "harness/judge/submission_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "harness/base/fingerprint.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/judge/solution.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20;
constexpr std::size_t kMostFiles = 1000;
constexpr const char* kSolution = ".json";
constexpr const char* kMainStem = "submission";

bool is_of_c(const fs::path& file) {
  const std::string extension = file.extension();
  return extension == ".c" || extension == ".cc" || extension == ".cpp";
}
bool may_be_judged(const fs::path& file) {
  return is_of_c(file) || file.extension() == ".so" || file.extension() == ".py";
}
bool is_hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

/// Regular files and no links, directly in a folder.
std::vector<fs::path> own_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.is_symlink() && entry.is_regular_file() && !is_hidden(entry.path())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

[[noreturn]] void refuse_size() {
  throw InvalidSubmission(fmt::format("it has more than {} files or {} MiB", kMostFiles, kMostBytes >> 20));
}

/// Names become words of command lines and of texts with a word on each line.
void require_plain(const fs::path& file) {
  if (printable_line(file.string()) != file.string())
    throw InvalidSubmission("the name of its file " + printable_line(file.string()) +
                            " has characters that nobody sees");
}

std::vector<fs::path> all_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::uintmax_t bytes = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_symlink() || !entry.is_regular_file()) continue;
    bytes += entry.file_size();
    files.push_back(fs::relative(entry.path(), folder));
    if (bytes > kMostBytes || files.size() > kMostFiles) refuse_size();
    require_plain(files.back());
  }
  std::sort(files.begin(), files.end());
  return files;
}

SubmissionKind kind_of(const fs::path& main) {
  if (main.extension() == ".so") return SubmissionKind::library;
  if (main.extension() == kSolution) return SubmissionKind::solution;
  return main.extension() == ".py" ? SubmissionKind::python : SubmissionKind::sources;
}

/// Those that are judged, of what lies directly in a folder.
std::vector<fs::path> main_files(const std::vector<fs::path>& own) {
  std::vector<fs::path> named, sources, others;
  for (const fs::path& file : own) {
    if (!may_be_judged(file)) continue;
    if (file.stem() == kMainStem) named.push_back(file);
    (is_of_c(file) ? sources : others).push_back(file);
  }
  if (named.size() > 1) throw InvalidSubmission("it has several files called submission");
  const bool by_name = named.size() == 1;
  if (by_name && !is_of_c(named.front())) return named;
  if (others.empty() || by_name) {
    if (sources.empty()) throw InvalidSubmission("it has no file .c, .cc, .cpp, .so or .py");
    return sources;
  }
  if (others.size() == 1 && sources.empty()) return others;
  throw InvalidSubmission("nobody can tell which of its files is judged; call it submission");
}

SubmissionFiles files_of(const fs::path& path) {
  std::error_code error;
  SubmissionFiles files;
  const fs::path whole = fs::canonical(path, error);
  if (error) throw UserError(path.string() + ": there is no such file");
  if (fs::is_directory(whole, error)) {
    files.root = whole;
    for (const fs::path& file : main_files(own_files(whole))) files.main.push_back(file.filename());
    files.all = all_below(whole);
  } else {
    if (!fs::is_regular_file(whole, error) || !(may_be_judged(whole) || is_solution(whole)))
      throw UserError(
          path.string() +
          ": a submission is a file .c, .cc, .cpp, .so or .py, a solution .json, or a folder with such files");
    if (fs::file_size(whole) > kMostBytes) refuse_size();
    require_plain(whole.filename());
    files.root = whole.parent_path();
    files.all = files.main = {whole.filename()};
  }
  files.kind = kind_of(files.main.front());
  return files;
}

/// What the system says of files that can't be read is the user's to know.
template <class Look>
auto or_tell(const Look& look) {
  try {
    return look();
  } catch (const fs::filesystem_error& error) {
    throw UserError(error.path1().string() + ": can't be read: " + error.code().message());
  }
}

}  // namespace

SubmissionFiles submission_files(const fs::path& path) {
  return or_tell([&] { return files_of(path); });
}

std::string name_of_submission(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename();
}

void copy_submission(const SubmissionFiles& files, const fs::path& to) {
  or_tell([&] {
    for (const fs::path& file : files.all) {
      fs::create_directories((to / file).parent_path());
      fs::copy_file(files.root / file, to / file);
    }
  });
}

std::string fingerprint_of(const SubmissionFiles& files) {
  Fingerprint all;
  for (const fs::path& file : files.all) {
    const std::string of_file = fingerprint_of(files.root / file);
    all.add(file.string() + '\0' + of_file + '\n');
  }
  return all.text();
}

namespace {

bool is_one(const fs::path& folder) {
  std::size_t sources = 0;
  for (const fs::path& file : own_files(folder)) {
    if (!may_be_judged(file)) continue;
    if (file.stem() == kMainStem) return true;
    ++sources;
  }
  const bool has_folders = std::any_of(fs::directory_iterator(folder), fs::directory_iterator(), [](const auto& entry) {
    return entry.is_directory() && !is_hidden(entry.path());
  });
  return sources == 1 && !has_folders;
}

std::vector<fs::path> found_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_symlink() || is_hidden(entry.path()) || entry.path().filename() == "__pycache__") continue;
    const bool is_file = entry.is_regular_file() && (may_be_judged(entry.path()) || is_solution(entry.path()));
    if (entry.is_directory() || is_file) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool is_one_submission(const fs::path& folder) {
  return or_tell([&] { return is_one(folder); });
}

std::vector<fs::path> submissions_in(const fs::path& folder) {
  return or_tell([&] { return found_in(folder); });
}

}  // namespace attest
