// Files of tensors for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reference/base/half.h"

namespace attest {

/// Writes .safetensors files, one after the other under the same name.
class FileWriter {
 public:
  FileWriter& add(const std::string& name, const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
    append(name, "F32", shape, values.data(), values.size() * 4);
    return *this;
  }
  FileWriter& add(const std::string& name, const std::vector<std::int64_t>& shape,
                  const std::vector<std::int32_t>& values) {
    append(name, "I32", shape, values.data(), values.size() * 4);
    return *this;
  }
  /// In 16 bits, IEEE.
  void add_halves(const std::string& name, const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
    std::vector<std::uint16_t> halves;
    for (const double value : values) halves.push_back(to_f16(value));
    append(name, "F16", shape, halves.data(), halves.size() * 2);
  }
  /// Of a type of 8 bits.
  void add_bytes(const std::string& name, const char* type, const std::vector<std::int64_t>& shape,
                 const std::vector<std::int8_t>& values) {
    append(name, type, shape, values.data(), values.size());
  }
  FileWriter& metadata(const std::string& key, const std::string& value) {
    header_["__metadata__"][key] = value;
    return *this;
  }

  std::string write() const {
    const std::string path = testing::TempDir() + "/attest_file_case_" + std::to_string(getpid()) + ".safetensors";
    nlohmann::json header = header_;
    std::string data;
    for (const auto& [name, bytes] : data_) {
      header[name]["data_offsets"] = {data.size(), data.size() + bytes.size()};
      data += bytes;
    }
    const std::string text = header.dump();
    std::ofstream file(path, std::ios::binary);
    const std::uint64_t length = text.size();
    file.write(reinterpret_cast<const char*>(&length), 8);
    file << text << data;
    return path;
  }

 private:
  void append(const std::string& name, const char* type, const std::vector<std::int64_t>& shape, const void* values,
              std::size_t bytes) {
    header_[name] = {{"dtype", type}, {"shape", shape}};
    data_[name].assign(static_cast<const char*>(values), bytes);
  }
  nlohmann::json header_ = nlohmann::json::object();
  std::map<std::string, std::string> data_;  ///< by tensor: one that is added again replaces the first
};

}  // namespace attest
