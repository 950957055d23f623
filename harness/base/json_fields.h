// Fields of an object that somebody else may have written: each must be there and of its type.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace attest {

/// Every member function throws UserError, in one line that begins with the object's place, for what isn't so.
class JsonFields {
 public:
  /// `json` is kept, not copied. `place`: what it is and where, as in "a.json: number 3 of \"cases\"".
  JsonFields(const nlohmann::ordered_json& json, std::string place);

  /// Text in one line, without control characters.
  std::string text(const char* key) const;
  double number(const char* key) const;
  /// A whole number from 0 to 1e15.
  std::size_t count(const char* key) const;
  bool flag(const char* key) const;
  const nlohmann::ordered_json& list(const char* key) const;
  const nlohmann::ordered_json& object(const char* key) const;
  std::vector<std::string> texts(const char* key) const;
  std::vector<std::size_t> counts(const char* key) const;
  const nlohmann::ordered_json& at(const char* key) const;

  /// The place of one thing in a list of this object.
  std::string place_in(const char* key, std::size_t number) const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const nlohmann::ordered_json& json_;
  std::string place_;
};

}  // namespace attest
