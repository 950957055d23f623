#include "harness/base/backend_source.h"

#include <filesystem>

#include "harness/base/text.h"

namespace attest {

std::string python_object(const std::string& source) {
  return source.starts_with(kPythonObject) ? source.substr(kPythonObject.size()) : std::string();
}

std::string seen_from_anywhere(const std::string& source) {
  const std::string object = python_object(source);
  if (object.empty()) return std::filesystem::absolute(source).string();
  const std::size_t colon = object.rfind(':');
  const std::string from = object.substr(0, colon);
  if (!from.ends_with(".py") || colon == std::string::npos) return source;
  return std::string(kPythonObject) + std::filesystem::absolute(from).string() + object.substr(colon);
}

std::string check_command(const std::string& source) {
  if (source.empty()) return "attest check";
  const std::string object = python_object(source);
  return object.empty() ? "attest check --plugin " + shell_quoted(source)
                        : "python -m attest check --python " + shell_quoted(object);
}

std::string title_of(const std::string& source) {
  const std::string object = python_object(source);
  return printable_line(object.empty() ? "plug-in " + source : "Python object " + object);
}

}  // namespace attest
