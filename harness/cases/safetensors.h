// Reader of .safetensors files: an 8-byte little-endian header length, a JSON header, then the tensors' bytes.
//
// The file is not trusted: every length, offset, type and shape is checked against the file's size before anything is
// read by it, and every complaint names the file and the tensor. Format: huggingface/safetensors, README "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace attest {

struct FileTensor {
  std::string dtype;  ///< as in the file: F32, F64, BOOL, ...
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::int64_t size() const;
  bool is_floating() const { return dtype == "F64" || dtype == "F32" || dtype == "F16" || dtype == "BF16"; }
  /// Element n as a double. Floating, boolean and integer types of this reader.
  double at(std::int64_t n) const;
  /// "[1,8,50,15]"
  std::string shape_text() const;
};

struct TensorFile {
  std::map<std::string, FileTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Throws UserError for a file that is missing, truncated, oversized or malformed.
TensorFile read_safetensors(const std::filesystem::path& path);
/// The same on bytes in memory; `name` stands in messages.
TensorFile parse_safetensors(const std::vector<std::byte>& bytes, const std::string& name);

/// Written beside its place and renamed. Throws UserError.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

}  // namespace attest
