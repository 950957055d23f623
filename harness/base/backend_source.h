// Where a backend comes from that is not this program's own, as one text: the path of a shared library, or "python:"
// with what Python imports.
#pragma once

#include <string>
#include <string_view>

namespace attest {

inline constexpr std::string_view kPythonObject = "python:";

/// "module:object" or "file.py:object" of a text with that beginning; "" of a library's path.
std::string python_object(const std::string& source);

/// As another process with another working folder must be told it.
std::string seen_from_anywhere(const std::string& source);

/// The command with the option that names it, quoted for a shell: "attest check --plugin ./libmine.so", or
/// "python -m attest check --python mine:attention".
std::string check_command(const std::string& source);

/// "plug-in ./libmine.so" or "Python object mine:attention", printable.
std::string title_of(const std::string& source);

}  // namespace attest
