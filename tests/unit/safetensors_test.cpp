// A file is not trusted: whatever is wrong with it is one sentence.
#include "harness/cases/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "harness/base/data_folder.h"
#include "harness/base/fingerprint.h"
#include "harness/base/user_error.h"
#include "tests/unit/complaint.h"

namespace attest {
namespace {

std::vector<std::byte> file_of(const std::string& header, std::size_t data, std::uint64_t length = 0) {
  const std::uint64_t n = length ? length : header.size();
  std::vector<std::byte> bytes(8 + header.size() + data);
  std::memcpy(bytes.data(), &n, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

TEST(Safetensors, ReadsWhatIsRight) {
  const auto file = parse_safetensors(
      file_of(R"({"__metadata__":{"scale":"1"},"q":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})", 8), "x");
  EXPECT_EQ(file.metadata.at("scale"), "1");
  EXPECT_EQ(file.tensors.at("q").at(1), 0);
}

TEST(Safetensors, HostileFilesGetOneSentence) {
  const std::string tensor = R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const auto rejects = [](const std::vector<std::byte>& bytes, const char* word) {
    const std::string message = complaint([&] { parse_safetensors(bytes, "hostile"); });
    EXPECT_NE(message.find(word), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  };
  rejects({}, "too few");
  rejects(file_of(tensor, 0), "truncated");
  rejects(file_of(tensor, 8, 1u << 30), "limit");
  rejects(file_of(tensor, 8, 5000), "truncated");
  rejects(file_of("[1,2]", 0), "not a JSON object");
  rejects(file_of("{\"q\":", 0), "not a JSON object");
  rejects(file_of(std::string(100000, '['), 0), "not a JSON object");
  rejects(file_of(R"({"q":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,4]}})", 4), "F8_E4M3");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "not a size");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", 8), "not a size");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,8]}})", 8),
          "overflows");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8), "needs 12 bytes");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "backwards");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}})", 9), "two sizes");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4), "axes");
  const std::string eight = R"("dtype":"F32","shape":[2],"data_offsets":)";
  rejects(file_of("{\"q\":{" + eight + "[0,8]},\"k\":{" + eight + "[4,12]}}", 12), "\"q\" and \"k\" overlap");
  rejects(file_of("{\"q\":{" + eight + "[0,8]},\"k\":{" + eight + "[0,8]}}", 8), "overlap");
  rejects(file_of("{\"q\":{" + eight + "[0,8]},\"k\":{" + eight + "[12,20]}}", 20), "a gap: bytes 8 to 12");
  rejects(file_of("{\"q\":{" + eight + "[4,12]}}", 12), "a gap: bytes 0 to 4");
  rejects(file_of(tensor, 9), "1 trailing bytes");
  rejects(file_of("{}", 5), "5 trailing bytes");
  rejects(file_of("{\"q\":{" + eight + "[0,8]},\"q\":{" + eight + "[0,8]}}", 8), "\"q\" twice");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[2],"dtype":"I32","data_offsets":[0,8]}})", 8), "\"dtype\" twice");
  rejects(file_of(R"({"__metadata__":{"scale":"1","scale":"2"}})", 0), "\"scale\" twice");
  rejects(file_of(R"({"q":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", 8), "nested");
  rejects(file_of("{\"\\u001b[2J\":{" + eight + "[0,8]}}", 8), "control characters in its name");
  rejects(file_of(R"({"q":7})", 0), "needs dtype");
  rejects(file_of(R"({"__metadata__":{"a":1}})", 0), "strings");
}

/// The most memory that this process has taken since forget_peak, in bytes.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5; }
double peak_memory() {
  std::ifstream file("/proc/self/status");
  double kilobytes = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmHWM:")) kilobytes = std::stod(line.substr(6));
  }
  return kilobytes * 1024;
}

TEST(Safetensors, LargeFilesAreRefusedBeforeTheyAreRead) {
  const std::string path = testing::TempDir() + "/attest_sparse.safetensors";
  const std::uint64_t data = std::uint64_t{3} << 30;
  const auto refuses = [&](const std::string& header, std::uint64_t size, const char* word) {
    std::ofstream file(path, std::ios::binary);
    const std::vector<std::byte> start = file_of(header, 0);
    file.write(reinterpret_cast<const char*>(start.data()), static_cast<std::streamsize>(start.size()));
    file.close();
    std::filesystem::resize_file(path, start.size() + size);
    forget_peak();
    const double before = peak_memory();
    const std::string message = complaint([&] { read_safetensors(path); });
    EXPECT_NE(message.find(word), std::string::npos) << word << ": " << message;
    EXPECT_LT(peak_memory() - before, 64e6) << word;
  };
  refuses("", data, "not a JSON object");
  refuses("{}", data, "trailing bytes");
  refuses(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", data, "trailing bytes");
  refuses(R"({"q":{"dtype":"U8","shape":[3221225472],"data_offsets":[0,3221225472]}})", data, "ATTEST_FILE_GIB");
  std::filesystem::remove(path);
}

TEST(Safetensors, AQuotaThatIsNoNumberIsTheUsersError) {
  const std::filesystem::path path = data_folder("golden") / "walkthroughs" / "three_tokens.safetensors";
  EXPECT_NO_THROW(read_safetensors(path));
  for (const char* gib : {"nan", "0", "-1", "1 GiB", "1e-9"}) {  // the last is one, and too small
    setenv("ATTEST_FILE_GIB", gib, 1);
    EXPECT_THROW(read_safetensors(path), UserError) << gib;
  }
  unsetenv("ATTEST_FILE_GIB");
}

TEST(Safetensors, TheContentIsTheFilesBytes) {
  std::vector<std::byte> bytes = file_of(
      R"({"k":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      8);
  Fingerprint whole;
  whole.add(bytes.data(), bytes.size());
  EXPECT_EQ(parse_safetensors(bytes, "x").content, whole.text());
  bytes.back() = std::byte{1};
  EXPECT_NE(parse_safetensors(bytes, "x").content, whole.text());
}

}  // namespace
}  // namespace attest
