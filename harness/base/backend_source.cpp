#include "harness/base/backend_source.h"

#include <filesystem>
#include <sstream>

#include "harness/base/run_words.h"
#include "harness/base/text.h"

namespace attest {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// As Python writes it.
std::string python_text(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string python_source(const std::string& object, const std::vector<std::string>& options) {
  std::string source = std::string(kPythonObject) + object;
  for (const std::string& word : options) source += "\n" + word;
  return source;
}

std::string python_object(const std::string& source) {
  const std::string words = python_words(source);
  return words.substr(0, words.find('\n'));
}

std::string python_words(const std::string& source) {
  return source.starts_with(kPythonObject) ? source.substr(kPythonObject.size()) : std::string();
}

std::string seen_from_anywhere(const std::string& source) {
  const std::string object = python_object(source);
  if (object.empty()) return std::filesystem::absolute(source).string();
  const std::size_t colon = object.rfind(':');
  const std::string from = object.substr(0, colon);
  if (!from.ends_with(".py") || colon == std::string::npos) return source;
  return std::string(kPythonObject) + std::filesystem::absolute(from).string() + python_words(source).substr(colon);
}

std::string command_with(const std::string& command, const std::string& source) {
  const std::string& program = run_words().program;
  if (source.empty()) return program + " " + command;
  const std::vector<std::string> words = lines_of(python_words(source));
  if (words.empty()) return program + " " + command + " --plugin " + shell_quoted(source);
  return "python -m attest " + command + " --python " + shell_line(words);
}

std::string python_line(const std::string& command, const std::string& source, const std::string& case_line) {
  const std::string words = source.substr(kObjectHere.size());
  const std::size_t comma = words.find(", ");
  const std::string options = comma == std::string::npos ? "" : words.substr(comma);
  return "attest." + (command == "list arithmetic" || command == "list conventions" ? "statements" : command) + "(" +
         words.substr(0, comma) + (case_line.empty() ? "" : ", " + python_text(case_line)) + options + ")";
}

std::string title_of(const std::string& source) {
  const std::string object = python_object(source);
  return printable_line(object.empty() ? "plug-in " + source : "Python object " + object);
}

}  // namespace attest
