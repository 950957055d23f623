#include "harness/cases/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <tuple>

#include "harness/base/fingerprint.h"
#include "harness/base/machine.h"
#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "reference/base/view.h"

namespace attest {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 16u << 20;  ///< bytes; real headers have a few kilobytes
constexpr std::size_t kMaxTensors = 4096, kMaxAxes = 8;
constexpr std::size_t kMaxDepth = 3;           ///< header, tensor, shape
constexpr const char* kNamesOfPairs = "int4";  ///< in the metadata: tensors of U8 that hold them
constexpr double kUncheckedBytes = 16 << 20;   ///< bytes for which memory is not asked

/// "F64, F32, ..."
std::string known_types() {
  std::string text;
  for (const FileType& type : file_types()) text += (text.empty() ? "" : ", ") + std::string(type.name);
  return text;
}

template <class T>
T read_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Where a file's bytes come from. `read` is asked for nothing beyond `size`.
class Source {
 public:
  virtual ~Source() = default;
  virtual std::uint64_t size() const = 0;
  /// False when the system refuses.
  virtual bool read(std::uint64_t from, void* to, std::size_t bytes) = 0;
};

class MemorySource : public Source {
 public:
  explicit MemorySource(const std::vector<std::byte>& bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  bool read(std::uint64_t from, void* to, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, bytes_.data() + from, bytes);
    return true;
  }

 private:
  const std::vector<std::byte>& bytes_;
};

class FileSource : public Source {
 public:
  FileSource(const std::filesystem::path& path, std::uint64_t size) : file_(path, std::ios::binary), size_(size) {}
  std::uint64_t size() const override { return size_; }
  bool read(std::uint64_t from, void* to, std::size_t bytes) override {
    file_.seekg(static_cast<std::streamoff>(from));
    return static_cast<bool>(file_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)));
  }

 private:
  std::ifstream file_;
  std::uint64_t size_;
};

/// Bytes of tensors that are read of one file. Throws UserError when the environment's number is none.
double quota_bytes() {
  const char* text = std::getenv("ATTEST_FILE_GIB");
  if (!text || !*text) return kFileQuotaBytes;
  double gib = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, gib);
  if (error != std::errc() || stop != end || !(gib > 0 && gib <= 1e6)) {
    throw UserError("ATTEST_FILE_GIB \"" + std::string(text) + "\": a number above 0 is wanted");
  }
  return gib * 0x1p30;
}

class Reader {
 public:
  Reader(Source& source, std::string name) : source_(source), name_(std::move(name)) {}

  TensorFile read() {
    const nlohmann::json header = read_header();
    if (!header.is_object()) fail("the header is not a JSON object");
    if (header.size() > kMaxTensors) fail("more than 4096 tensors");
    TensorFile file;
    for (const auto& [key, value] : header.items()) {
      if (key == "__metadata__")
        read_metadata(value, file);
      else
        entries_.push_back(read_entry(key, value));
    }
    check_places();
    check_quota();
    for (Entry& entry : entries_) {  // in the order of the file, so that the fingerprint is the file's
      FileTensor& tensor = file.tensors[entry.name];
      tensor = std::move(entry.tensor);
      tensor.bytes.resize(static_cast<std::size_t>(entry.last - entry.first));
      get(data_start_ + entry.first, tensor.bytes.data(), tensor.bytes.size());
    }
    file.content = content_.text();
    read_pairs(file);
    return file;
  }

 private:
  /// A tensor whose bytes, of the data from `first` to `last`, are not read yet.
  struct Entry {
    std::string name;
    FileTensor tensor;
    std::uint64_t first, last;
  };

  [[noreturn]] void fail(const std::string& message) const { throw UserError(name_ + ": " + message); }

  void get(std::uint64_t from, void* to, std::size_t bytes) {
    if (!source_.read(from, to, bytes)) fail("can't be read");
    content_.add(to, bytes);
  }

  nlohmann::json read_header() {
    const std::uint64_t size = source_.size();
    if (size < 8) fail("the file has " + std::to_string(size) + " bytes, too few for a header");
    std::array<std::byte, 8> first;
    get(0, first.data(), first.size());
    const auto length = read_as<std::uint64_t>(first.data());
    if (length > kMaxHeaderBytes) fail("the header claims " + std::to_string(length) + " bytes; 16 MiB are the limit");
    if (length > size - 8) {
      fail("truncated: the header claims " + std::to_string(length) + " bytes, the file has " +
           std::to_string(size - 8));
    }
    std::string text(static_cast<std::size_t>(length), ' ');
    get(8, text.data(), text.size());
    data_start_ = 8 + length;
    return parse_header(text);
  }

  /// The parser alone would keep the last of two equal keys, and build whatever is nested.
  nlohmann::json parse_header(const std::string& text) const {
    using Event = nlohmann::json::parse_event_t;
    std::vector<std::set<std::string>> open;  // the keys of objects and arrays that are open
    const auto watch = [&](int, Event event, nlohmann::json& value) {
      if (event == Event::object_start || event == Event::array_start) {
        if (open.empty() && event == Event::array_start) fail("the header is not a JSON object");
        if (open.size() == kMaxDepth) fail("the header is not a JSON object of tensors: it is nested deeper");
        open.emplace_back();
      } else if (event == Event::object_end || event == Event::array_end) {
        open.pop_back();
      } else if (event == Event::key && !open.back().insert(value.get<std::string>()).second) {
        fail("the header has \"" + value.get<std::string>().substr(0, 64) + "\" twice");
      }
      return true;
    };
    return nlohmann::json::parse(text, watch, false);
  }

  void read_metadata(const nlohmann::json& value, TensorFile& file) const {
    if (!value.is_object()) fail("__metadata__ is not an object of strings");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail("__metadata__ is not an object of strings");
      file.metadata[key] = text.get<std::string>();
    }
  }

  /// Tensors of bytes that are pairs of int4, as the metadata say.
  void read_pairs(TensorFile& file) const {
    const auto list = file.metadata.find(kNamesOfPairs);
    if (list == file.metadata.end()) return;
    std::istringstream names(list->second);
    for (std::string name; std::getline(names, name, ',');) {
      const auto found = file.tensors.find(name);
      if (found == file.tensors.end() || found->second.dtype != "U8" || found->second.shape.empty())
        fail("metadata " + std::string(kNamesOfPairs) + ": \"" + name.substr(0, 64) + "\" is no tensor of U8");
      found->second.dtype = format_of(DType::i4).safetensors;
      found->second.shape.back() *= 2;
    }
    file.metadata.erase(list);
  }

  static bool is_size(const nlohmann::json& value) { return value.is_number_unsigned(); }

  Entry read_entry(const std::string& key, const nlohmann::json& value) const {
    const auto complain = [&](const std::string& message) { fail("tensor \"" + key.substr(0, 64) + "\": " + message); };
    if (printable_line(key) != key) complain("control characters in its name");
    if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets") ||
        !value["dtype"].is_string() || !value["shape"].is_array() || !value["data_offsets"].is_array()) {
      complain("needs dtype, shape and data_offsets");
    }
    FileTensor tensor;
    tensor.dtype = value["dtype"].get<std::string>();
    const FileType* type = find_file_type(tensor.dtype);
    if (!type) complain("type " + tensor.dtype.substr(0, 16) + " is not read; " + known_types() + " are");
    std::uint64_t bits = type->bits;
    if (value["shape"].size() > kMaxAxes) complain("more than 8 axes");
    for (const auto& extent : value["shape"]) {
      if (!is_size(extent)) complain("the shape holds something that is not a size");
      const auto n = extent.get<std::uint64_t>();
      if (n > (std::uint64_t{1} << 40)) complain("an extent of " + std::to_string(n) + " is absurd");
      tensor.shape.push_back(static_cast<std::int64_t>(n));
      if (__builtin_mul_overflow(bits, n, &bits)) complain("the size overflows");
    }
    if (bits % 8 != 0) complain("an odd number of elements of 4 bits");
    const std::uint64_t bytes = bits / 8;
    const auto& offsets = value["data_offsets"];
    if (offsets.size() != 2 || !is_size(offsets[0]) || !is_size(offsets[1])) complain("data_offsets are two sizes");
    const auto first = offsets[0].get<std::uint64_t>(), last = offsets[1].get<std::uint64_t>();
    const std::uint64_t available = source_.size() - data_start_;
    if (first > last) complain("data_offsets run backwards");
    if (last > available) {
      complain("truncated: it ends at byte " + std::to_string(last) + " of the data, the file has " +
               std::to_string(available));
    }
    if (last - first != bytes) {
      complain("shape " + tensor.shape_text() + " of " + tensor.dtype + " needs " + std::to_string(bytes) +
               " bytes, data_offsets give " + std::to_string(last - first));
    }
    return {key, std::move(tensor), first, last};
  }

  /// Sorts the tensors by their places, which must follow one another from the header to the end of the file.
  void check_places() {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.first, a.last, a.name) < std::tie(b.first, b.last, b.name);
    });
    std::uint64_t end = 0;
    const std::string* before = nullptr;
    for (const Entry& entry : entries_) {
      if (entry.first < end) fail("tensors \"" + *before + "\" and \"" + entry.name + "\" overlap");
      if (entry.first > end) {
        fail("a gap: bytes " + std::to_string(end) + " to " + std::to_string(entry.first) +
             " of the data belong to no tensor");
      }
      end = entry.last;
      before = &entry.name;
    }
    const std::uint64_t data = source_.size() - data_start_;
    if (end != data) fail(std::to_string(data - end) + " trailing bytes belong to no tensor");
  }

  void check_quota() const {
    const auto bytes = static_cast<double>(source_.size() - data_start_);
    if (const double quota = quota_bytes(); bytes > quota) {
      fail(fmt::format("its tensors have {:.1f} GiB, {:g} GiB are the limit; ATTEST_FILE_GIB sets another",
                       bytes / 0x1p30, quota / 0x1p30));
    }
    if (bytes > kUncheckedBytes && bytes > available_memory_bytes()) {
      fail(fmt::format("its tensors have {:.1f} GiB, {:.1f} GiB of memory are available", bytes / 0x1p30,
                       available_memory_bytes() / 0x1p30));
    }
  }

  Source& source_;
  std::string name_;
  std::uint64_t data_start_ = 0;
  std::vector<Entry> entries_;
  Fingerprint content_;
};

}  // namespace

std::span<const FileType> file_types() {
  static const std::vector<FileType> types = [] {
    std::vector<FileType> list;
    for (const Format& format : kFormats) {
      if (is_number(format.type))
        list.push_back({format.safetensors, static_cast<std::size_t>(format.bits), format.type});
    }
    for (const Format& format : kFormats) {
      if (!is_number(format.type))
        list.push_back({format.safetensors, static_cast<std::size_t>(format.bits), std::nullopt});
    }
    for (const auto& [name, bits] : {std::pair{"U8", 8}, std::pair{"I64", 64}})
      list.push_back({name, static_cast<std::size_t>(bits), std::nullopt});
    return list;
  }();
  return types;
}

const FileType* find_file_type(std::string_view name) {
  const std::span<const FileType> types = file_types();
  const auto found = std::ranges::find(types, name, &FileType::name);
  return found == types.end() ? nullptr : &*found;
}

std::string file_type_of(DType dtype) {
  for (const FileType& type : file_types()) {
    if (type.stored == dtype) return std::string(type.name);
  }
  return "";
}

std::int64_t FileTensor::size() const {
  std::int64_t count = 1;
  for (std::int64_t n : shape) count *= n;
  return count;
}

std::optional<DType> FileTensor::stored_type() const {
  const FileType* type = find_file_type(dtype);
  return type ? type->stored : std::nullopt;
}

double FileTensor::at(std::int64_t n) const {
  if (const auto type = stored_type()) return load(bytes.data(), *type, n);
  const std::byte* from = bytes.data() + static_cast<std::size_t>(n) * find_file_type(dtype)->bytes();
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
  MemorySource source(bytes);
  return Reader(source, name).read();
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) throw UserError(path.string() + ": no such file");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw UserError(path.string() + ": can't be read: " + error.message());
  FileSource source(path, size);
  return Reader(source, path.string()).read();
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  nlohmann::json header = nlohmann::json::object();
  std::map<std::string, std::string> metadata = file.metadata;
  std::size_t end = 0;
  for (const auto& [name, tensor] : file.tensors) {
    nlohmann::json& entry = header[name];
    entry = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {end, end + tensor.bytes.size()}}};
    end += tensor.bytes.size();
    if (tensor.stored_type() != DType::i4) continue;
    entry["dtype"] = "U8";
    entry["shape"].back() = tensor.shape.back() / 2;
    std::string& pairs = metadata[kNamesOfPairs];
    pairs += (pairs.empty() ? "" : ",") + name;
  }
  if (!metadata.empty()) header["__metadata__"] = metadata;
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
