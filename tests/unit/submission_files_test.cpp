// Which files of a stranger's are judged, and which folders are one submission.
#include "harness/judge/submission_files.h"

#include <gtest/gtest.h>

#include "harness/base/user_error.h"
#include "tests/unit/scratch_folder.h"

namespace attest {
namespace {

class SubmissionFolder : public testing::Test {
 protected:
  /// A file of the folder "s", which is made.
  void write(const std::string& name, const std::string& text = "text") {
    const fs::path path = folder_ / "s" / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  SubmissionFiles found() const { return submission_files(folder_ / "s"); }
  bool is_one() const { return is_one_submission(folder_ / "s"); }

  Folder folder_;
};

using Names = std::vector<fs::path>;

TEST_F(SubmissionFolder, AFileIsItself) {
  write("kernel.py");
  write("other.py");
  const SubmissionFiles files = submission_files(folder_ / "s/kernel.py");
  EXPECT_EQ(files.kind, SubmissionKind::python);
  EXPECT_EQ(files.main, Names{"kernel.py"});
  EXPECT_EQ(files.all, files.main) << "what lies beside it is no part of it";
  EXPECT_EQ(name_of_submission(folder_ / "s/kernel.py"), "kernel.py");
  EXPECT_EQ(name_of_submission(folder_ / "s/"), "s");
  write("notes.txt");
  EXPECT_THROW(submission_files(folder_ / "s/notes.txt"), UserError);
  EXPECT_THROW(submission_files(folder_ / "s/nobody.c"), UserError);
}

TEST_F(SubmissionFolder, AllSourcesOfCAreCompiledTogether) {
  write("b.cpp");
  write("a.c");
  write("include/a.h");
  EXPECT_EQ(found().kind, SubmissionKind::sources);
  EXPECT_EQ(found().main, (Names{"a.c", "b.cpp"}));
  EXPECT_EQ(found().all, (Names{"a.c", "b.cpp", "include/a.h"}));
}

TEST_F(SubmissionFolder, AFileCalledSubmissionIsTheOne) {
  write("helper.py");
  write("notes.py");
  EXPECT_THROW(found(), InvalidSubmission) << "nobody can tell";
  write("submission.py");
  EXPECT_EQ(found().main, Names{"submission.py"});
  EXPECT_EQ(found().all.size(), 3u);
  write("submission.c");
  EXPECT_THROW(found(), InvalidSubmission) << "two of them";
}

TEST_F(SubmissionFolder, WithoutAnyIsInvalid) {
  write("README.md");
  EXPECT_THROW(found(), InvalidSubmission);
  write(".hidden.c");
  EXPECT_THROW(found(), InvalidSubmission);
}

TEST_F(SubmissionFolder, LinksAreLeftOut) {
  write("kernel.c");
  write("inside/kernel.h");
  std::ofstream(folder_ / "secret") << "of the judge";
  fs::create_symlink(folder_ / "secret", folder_ / "s/secret.h");
  fs::create_directory_symlink("/etc", folder_ / "s/etc");
  EXPECT_EQ(found().all, (Names{"inside/kernel.h", "kernel.c"}));
  fs::create_directory(folder_ / "copy");
  copy_submission(found(), folder_ / "copy");
  EXPECT_EQ(text_of(folder_ / "copy/inside/kernel.h"), "text");
  EXPECT_FALSE(fs::exists(folder_ / "copy/secret.h"));
}

TEST_F(SubmissionFolder, TooManyFilesAreInvalid) {
  write("kernel.c");
  for (int n = 0; n < 1000; ++n) write("more/" + std::to_string(n));
  EXPECT_THROW(found(), InvalidSubmission);
}

TEST_F(SubmissionFolder, ALargeFileIsInvalidBeforeItIsCopied) {
  write("kernel.c");
  fs::resize_file(folder_ / "s/kernel.c", std::uintmax_t{1} << 40);  // a hole
  EXPECT_THROW(submission_files(folder_ / "s/kernel.c"), InvalidSubmission);
  EXPECT_THROW(found(), InvalidSubmission);
}

TEST_F(SubmissionFolder, NamesThatNobodySeesAreInvalid) {
  for (const std::string name : {"a\n--call\nb.py", "a\x1b[31m.c", "a\xff.c"}) {
    write(name);
    EXPECT_THROW(submission_files(folder_ / "s" / name), InvalidSubmission);
    fs::remove(folder_ / "s" / name);
  }
  write("submission.c");
  write("inside/a\n.h");
  EXPECT_THROW(found(), InvalidSubmission);
}

TEST_F(SubmissionFolder, ASolutionIsOneByWhatItSays) {
  write("kernel.json", R"({"spec": {}, "sources": []})");
  write("results.json", R"({"verdict": "pass"})");
  EXPECT_EQ(submission_files(folder_ / "s/kernel.json").kind, SubmissionKind::solution);
  EXPECT_THROW(submission_files(folder_ / "s/results.json"), UserError);
  EXPECT_EQ(submissions_in(folder_ / "s").size(), 1u);
}

TEST_F(SubmissionFolder, FingerprintsKnowNamesAndContents) {
  write("kernel.c");
  const std::string first = fingerprint_of(found());
  EXPECT_EQ(first, fingerprint_of(found()));
  write("kernel.c", "other text");
  const std::string other = fingerprint_of(found());
  EXPECT_NE(first, other);
  write("kernel.h", "");
  EXPECT_NE(fingerprint_of(found()), other);
}

TEST_F(SubmissionFolder, OneSubmissionOrSeveral) {
  write("kernel.c");
  EXPECT_TRUE(is_one()) << "a single source";
  write("kernel.h");
  EXPECT_TRUE(is_one());
  write("other.c");
  EXPECT_FALSE(is_one()) << "two submissions";
  write("submission.c");
  EXPECT_TRUE(is_one()) << "it says so";
}

TEST_F(SubmissionFolder, FoldersBesideASourceAreSubmissions) {
  write("kernel.c");
  write("another/kernel.c");
  EXPECT_FALSE(is_one());
}

TEST_F(SubmissionFolder, WhatAFolderHolds) {
  for (const char* name : {"b.py", "a.c", "d.so", "c/kernel.cpp", "results.jsonl", ".hidden.c", "__pycache__/b.pyc"})
    write(name);
  fs::create_symlink(folder_ / "s/a.c", folder_ / "s/link.c");
  Names names;
  for (const fs::path& path : submissions_in(folder_ / "s")) names.push_back(path.filename());
  EXPECT_EQ(names, (Names{"a.c", "b.py", "c", "d.so"}));
}

}  // namespace
}  // namespace attest
