// Where a backend comes from that is not this program's own, as one text: the path of a shared library, or "python:"
// with what Python imports and what is said of it, or "here:" with an object that lives in this interpreter alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attest {

inline constexpr std::string_view kPythonObject = "python:";
/// An object that no other process can import, as "here:attention, tensors='torch'": what stands in the brackets of a
/// call of attest for Python, but for the case.
inline constexpr std::string_view kObjectHere = "here:";

/// The text of an object with the options that state something of it, each word a line of its own.
std::string python_source(const std::string& object, const std::vector<std::string>& options);
/// "module:object" or "file.py:object" of a text with that beginning; "" of a library's path.
std::string python_object(const std::string& source);
/// The same with its options, as python_source() put them together without the beginning.
std::string python_words(const std::string& source);

/// As another process with another working folder must be told it.
std::string seen_from_anywhere(const std::string& source);

/// A command with the options that name it and say what it is, quoted for a shell: "attest check --plugin
/// ./libmine.so", or "python -m attest check --python mine:attention --tensors torch".
std::string command_with(const std::string& command, const std::string& source);

/// For an object that lives here: "attest.check(attention, 'seq=4 dim=4', tensors='torch')". No case: none is named.
std::string python_line(const std::string& command, const std::string& source, const std::string& case_line);

/// "plug-in ./libmine.so" or "Python object mine:attention", printable.
std::string title_of(const std::string& source);

}  // namespace attest
