#include "harness/cases/safetensors.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/output_file.h"
#include "harness/base/user_error.h"
#include "reference/view.h"

namespace attest {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 16u << 20;  ///< bytes; real headers have a few kilobytes
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{8} << 30;
constexpr std::size_t kMaxTensors = 4096, kMaxAxes = 8;

/// "F64, F32, ..."
std::string known_types() {
  std::string text;
  for (const FileType& type : kFileTypes) text += (text.empty() ? "" : ", ") + std::string(type.name);
  return text;
}

template <class T>
T read_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

class Reader {
 public:
  Reader(const std::vector<std::byte>& bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  TensorFile read() {
    if (bytes_.size() < 8) fail("the file has " + std::to_string(bytes_.size()) + " bytes, too few for a header");
    const auto length = read_as<std::uint64_t>(bytes_.data());
    if (length > kMaxHeaderBytes) fail("the header claims " + std::to_string(length) + " bytes; 16 MiB are the limit");
    if (length > bytes_.size() - 8) {
      fail("truncated: the header claims " + std::to_string(length) + " bytes, the file has " +
           std::to_string(bytes_.size() - 8));
    }
    data_start_ = 8 + static_cast<std::size_t>(length);
    const char* text = reinterpret_cast<const char*>(bytes_.data()) + 8;
    const nlohmann::json header = nlohmann::json::parse(text, text + length, nullptr, false);
    if (!header.is_object()) fail("the header is not a JSON object");
    if (header.size() > kMaxTensors) fail("more than 4096 tensors");
    TensorFile file;
    for (const auto& [key, value] : header.items()) {
      if (key == "__metadata__")
        read_metadata(value, file);
      else
        file.tensors.emplace(key, read_tensor(key, value));
    }
    return file;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw UserError(name_ + ": " + message); }

  void read_metadata(const nlohmann::json& value, TensorFile& file) const {
    if (!value.is_object()) fail("__metadata__ is not an object of strings");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail("__metadata__ is not an object of strings");
      file.metadata[key] = text.get<std::string>();
    }
  }

  static bool is_size(const nlohmann::json& value) { return value.is_number_unsigned(); }

  FileTensor read_tensor(const std::string& key, const nlohmann::json& value) const {
    const auto complain = [&](const std::string& message) { fail("tensor \"" + key.substr(0, 64) + "\": " + message); };
    if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets") ||
        !value["dtype"].is_string() || !value["shape"].is_array() || !value["data_offsets"].is_array()) {
      complain("needs dtype, shape and data_offsets");
    }
    FileTensor tensor;
    tensor.dtype = value["dtype"].get<std::string>();
    const FileType* type = find_file_type(tensor.dtype);
    if (!type) complain("type " + tensor.dtype.substr(0, 16) + " is not read; " + known_types() + " are");
    std::uint64_t bytes = type->size;
    if (value["shape"].size() > kMaxAxes) complain("more than 8 axes");
    for (const auto& extent : value["shape"]) {
      if (!is_size(extent)) complain("the shape holds something that is not a size");
      const auto n = extent.get<std::uint64_t>();
      if (n > (std::uint64_t{1} << 40)) complain("an extent of " + std::to_string(n) + " is absurd");
      tensor.shape.push_back(static_cast<std::int64_t>(n));
      if (__builtin_mul_overflow(bytes, n, &bytes)) complain("the size overflows");
    }
    const auto& offsets = value["data_offsets"];
    if (offsets.size() != 2 || !is_size(offsets[0]) || !is_size(offsets[1])) complain("data_offsets are two sizes");
    const auto first = offsets[0].get<std::uint64_t>(), last = offsets[1].get<std::uint64_t>();
    const std::uint64_t available = bytes_.size() - data_start_;
    if (first > last) complain("data_offsets run backwards");
    if (last > available) {
      complain("truncated: it ends at byte " + std::to_string(last) + " of the data, the file has " +
               std::to_string(available));
    }
    if (last - first != bytes) {
      complain("shape " + tensor.shape_text() + " of " + tensor.dtype + " needs " + std::to_string(bytes) +
               " bytes, data_offsets give " + std::to_string(last - first));
    }
    const std::byte* from = bytes_.data() + data_start_ + first;
    tensor.bytes.assign(from, from + bytes);
    return tensor;
  }

  const std::vector<std::byte>& bytes_;
  std::string name_;
  std::size_t data_start_ = 0;
};

}  // namespace

const FileType* find_file_type(std::string_view name) {
  const auto found =
      std::find_if(kFileTypes.begin(), kFileTypes.end(), [name](const FileType& type) { return type.name == name; });
  return found == kFileTypes.end() ? nullptr : &*found;
}

std::string file_type_of(DType dtype) {
  for (const FileType& type : kFileTypes) {
    if (type.floating == dtype) return std::string(type.name);
  }
  return "";
}

std::int64_t FileTensor::size() const {
  std::int64_t count = 1;
  for (std::int64_t n : shape) count *= n;
  return count;
}

std::optional<DType> FileTensor::floating_type() const {
  const FileType* type = find_file_type(dtype);
  return type ? type->floating : std::nullopt;
}

double FileTensor::at(std::int64_t n) const {
  if (const auto type = floating_type()) return load(bytes.data(), *type, n);
  const std::byte* from = bytes.data() + static_cast<std::size_t>(n) * find_file_type(dtype)->size;
  if (dtype == "I64") return static_cast<double>(read_as<std::int64_t>(from));
  if (dtype == "I32") return read_as<std::int32_t>(from);
  if (dtype == "I8") return read_as<std::int8_t>(from);
  return read_as<std::uint8_t>(from);
}

std::string FileTensor::shape_text() const {
  std::string text;
  for (std::int64_t n : shape) text += (text.empty() ? "" : ",") + std::to_string(n);
  return "[" + text + "]";
}

TensorFile parse_safetensors(const std::vector<std::byte>& bytes, const std::string& name) {
  return Reader(bytes, name).read();
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) throw UserError(path.string() + ": no such file");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kMaxFileBytes) throw UserError(path.string() + ": larger than 8 GiB, or unreadable");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size))) {
    throw UserError(path.string() + ": can't be read");
  }
  return parse_safetensors(bytes, path.string());
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  nlohmann::json header = nlohmann::json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::size_t end = 0;
  for (const auto& [name, tensor] : file.tensors) {
    header[name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {end, end + tensor.bytes.size()}}};
    end += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  OutputFile out(path);
  out.stream().write(reinterpret_cast<const char*>(&length), sizeof length);
  out.stream() << text;
  for (const auto& [name, tensor] : file.tensors) {
    out.stream().write(reinterpret_cast<const char*>(tensor.bytes.data()),
                       static_cast<std::streamsize>(tensor.bytes.size()));
  }
  out.finish();
}

}  // namespace attest
