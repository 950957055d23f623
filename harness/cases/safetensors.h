// Reader of .safetensors files: an 8-byte little-endian header length, a JSON header, then the tensors' bytes.
//
// The file is not trusted: every length, offset, type and shape is checked against the file's size, and that against a
// quota, before any tensor is read; the tensors must fill the file without overlaps, gaps and trailing bytes; every
// complaint names the file and the tensor. Format: huggingface/safetensors, README "Format".
//
// It has no integers of 4 bits: they lie two to a byte in a U8 of half the width, and the metadata "int4" name such
// tensors: "k,v".
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/base/types.h"

namespace attest {

/// A type that a tensor of a file may have.
struct FileType {
  std::string_view name;
  std::size_t bits;             ///< of an element
  std::optional<DType> stored;  ///< what it is in a case, for those that a case stores as numbers

  std::size_t bytes() const { return bits / 8; }
};
/// Those of the table of formats, and whole numbers that files have besides.
std::span<const FileType> file_types();
/// The type with this name, or nullptr.
const FileType* find_file_type(std::string_view name);
/// The name in a file of a case's type.
std::string file_type_of(DType type);

struct FileTensor {
  std::string dtype;  ///< as in the file: F32, F64, BOOL, ...; I4 of a U8 that the metadata say to hold int4
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::int64_t size() const;
  /// The type in a case; nullopt for what counts, numbers or marks things.
  std::optional<DType> stored_type() const;
  bool is_numeric() const { return stored_type().has_value(); }
  /// Element n as a double. Of any type of this reader.
  double at(std::int64_t n) const;
  /// "[1,8,50,15]"
  std::string shape_text() const;
};

struct TensorFile {
  std::map<std::string, FileTensor> tensors;
  std::map<std::string, std::string> metadata;
  std::string content;  ///< fingerprint of the file's bytes
};

/// Bytes of tensors that a file may have, where $ATTEST_FILE_GIB doesn't say otherwise.
inline constexpr double kFileQuotaBytes = 2 * 0x1p30;

/// Throws UserError for a file that is missing, truncated, malformed, larger than the quota or than memory has room
/// for.
TensorFile read_safetensors(const std::filesystem::path& path);
/// The same on bytes in memory; `name` stands in messages.
TensorFile parse_safetensors(const std::vector<std::byte>& bytes, const std::string& name);

/// Written beside its place and renamed. Throws UserError.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

}  // namespace attest
