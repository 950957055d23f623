// Writes mutants of a kernel: copies of its source, each with one token changed.
//
//   generate_mutants OUT PARTS SOURCE=CLASS [SOURCE=CLASS ...]
//
// From each SOURCE the class template CLASS, a Plan, is taken with what stands before it. In its members, from
// `void run()` on, every comparison, operator, constant, index and condition is changed in turn. OUT/mutants_<n>.cpp
// hold the copies, each in a namespace of its own, and OUT/mutants.inc one row for each.
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// One change of the source: `length` characters at `at` become `now`.
struct Change {
  std::size_t at, length;
  std::string now;
};

struct Kernel {
  std::string file, class_name, includes, text;
  std::size_t first, last;  ///< where changes are made
};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Comments and strings as blanks, so that positions stay.
std::string blanked(std::string text) {
  for (std::size_t n = 0; n + 1 < text.size(); ++n) {
    if (text.compare(n, 2, "//") == 0) {
      while (n < text.size() && text[n] != '\n') text[n++] = ' ';
    } else if (text[n] == '"') {
      for (++n; n < text.size() && text[n] != '"'; ++n) text[n] = ' ';
    }
  }
  return text;
}

/// Position behind the bracket that closes the one at `open`.
std::size_t behind_closing(const std::string& text, std::size_t open) {
  const char in = text[open], out = in == '(' ? ')' : in == '{' ? '}' : ']';
  int depth = 0;
  for (std::size_t n = open; n < text.size(); ++n) {
    depth += text[n] == in;
    if (text[n] == out && --depth == 0) return n + 1;
  }
  throw std::runtime_error("a bracket is not closed");
}

/// `source` cut down to the class, its include lines apart.
Kernel read_kernel(const std::string& path, const std::string& class_name) {
  Kernel kernel{std::filesystem::path(path).stem().string(), class_name, "", "", 0, 0};
  const std::string source = read_file(path);
  const std::size_t start = source.find("class " + class_name + " ");
  if (start == std::string::npos) throw std::runtime_error(path + " holds no class " + class_name);
  const std::size_t end = behind_closing(blanked(source), source.find('{', start)) + 1;
  std::istringstream lines(source.substr(0, end));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#include")) kernel.includes += line + "\n";
    // Namespaces around the class give way to the mutant's own.
    const bool dropped = line.starts_with("#") || line.starts_with("namespace");
    kernel.text += (dropped ? "" : line) + "\n";
  }
  kernel.first = kernel.text.find("void run()");
  kernel.last = kernel.text.rfind('\n', kernel.text.find("Call p_;"));
  if (kernel.first == std::string::npos || kernel.last == std::string::npos)
    throw std::runtime_error(path + ": no run() or no members");
  return kernel;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Finder {
 public:
  explicit Finder(const Kernel& kernel) : text_(blanked(kernel.text)) {
    for (std::size_t n = kernel.first; n < kernel.last;) n = step(n);
  }
  const std::vector<Change>& changes() const { return changes_; }

 private:
  void add(std::size_t at, std::size_t length, std::string_view now) {
    changes_.push_back({at, length, std::string(now)});
  }

  std::size_t step(std::size_t n) {
    for (std::string_view skipped : {"void download(", "std::size_t workspace_bytes("}) {
      if (text_.compare(n, skipped.size(), skipped) == 0) return behind_closing(text_, text_.find('{', n));
    }
    const char c = text_[n];
    if (is_word(c)) return word(n);
    if (std::ispunct(static_cast<unsigned char>(c))) return punctuation(n);
    return n + 1;
  }

  std::size_t word(std::size_t n) {
    std::size_t end = n;
    while (is_word(text_[end])) ++end;
    const std::string name = text_.substr(n, end - n);
    if (std::isdigit(static_cast<unsigned char>(name[0]))) {
      add(n, name.size(), name == "0" ? "1" : name == "1" ? "0" : name + "+1");
      return end;
    }
    static const std::map<std::string, std::string> others = {
        {"true", "false"}, {"false", "true"}, {"max", "min"},        {"exp", "exp2"},
        {"log", "log2"},   {"tanh", "atan"},  {"continue", "break"}, {"kHidden", "kAlmostHidden"}};
    const bool called = name == "continue" || name == "true" || name == "false" || name == "kHidden" ||
                        (text_.compare(n - 2, 2, "::") == 0 && text_[end] == '(');
    if (const auto other = others.find(name); other != others.end() && called) add(n, name.size(), other->second);
    if (name == "if") condition(end + 1);
    if (is_argument(n, end)) add(n, name.size(), "0");
    return end;
  }

  /// A condition that always or never holds.
  void condition(std::size_t open) {
    const std::size_t inside = open + 1, length = behind_closing(text_, open) - 1 - inside;
    const std::string was = text_.substr(inside, length);
    if (was.find(';') != std::string::npos) return;  // declares something
    add(inside, length, "true || (" + was + ")");
    add(inside, length, "false && (" + was + ")");
  }

  /// Whether the name [n, end) is an index by itself: an argument or a subscript.
  bool is_argument(std::size_t n, std::size_t end) const {
    static constexpr std::string_view kIndices[] = {"b", "h", "i", "j", "t", "c", "d", "g", "group", "row"};
    const std::string_view name(text_.data() + n, end - n);
    bool known = false;
    for (std::string_view index : kIndices) known |= name == index;
    const bool starts = text_[n - 1] == '(' || text_[n - 1] == '[' || text_.compare(n - 2, 2, ", ") == 0;
    const bool ends = text_[end] == ')' || text_[end] == ']' || text_[end] == ',';
    return known && starts && ends;
  }

  std::size_t punctuation(std::size_t n) {
    struct Rule {
      std::string_view was;
      std::vector<std::string_view> now;
    };
    // A binary operator stands between blanks.
    static const std::vector<Rule> rules = {
        {" <= ", {"<", ">"}}, {" >= ", {">", "<"}}, {" == ", {"!="}},      {" != ", {"=="}},
        {" && ", {"||"}},     {" || ", {"&&"}},     {" += ", {"-=", "="}}, {" -= ", {"+="}},
        {" *= ", {"/="}},     {" /= ", {"*="}},     {" < ", {"<=", ">"}},  {" > ", {">=", "<"}},
        {" + ", {"-"}},       {" - ", {"+"}},       {" * ", {"+", "/"}},   {" / ", {"*", "-"}}};
    for (const Rule& rule : rules) {
      if (text_.compare(n - 1, rule.was.size(), rule.was) != 0) continue;
      for (std::string_view now : rule.now) add(n, rule.was.size() - 2, now);
      return n + rule.was.size() - 2;
    }
    if (text_[n] == '!' && text_[n + 1] != '=') add(n, 1, "");
    if (text_[n] == '-' && is_word(text_[n + 1]) && !is_word(text_[n - 1])) add(n, 1, "");
    if (text_.compare(n, 2, "++") == 0) {
      std::size_t end = n + 2;
      while (is_word(text_[end])) ++end;
      add(n, end - n, text_.substr(n + 2, end - n - 2) + " += 2");
      return end;
    }
    return n + 1;
  }

  std::string text_;
  std::vector<Change> changes_;
};

/// Name of the member that `at` lies in.
std::string function_of(const std::string& text, std::size_t at) {
  std::string name;
  std::istringstream lines(text.substr(0, at + 1));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  ") || line.starts_with("   ") || line[2] == '/') continue;
    const std::size_t open = line.find('(');
    if (open == std::string::npos) continue;
    std::size_t first = open;
    while (first > 0 && is_word(line[first - 1])) --first;
    name = line.substr(first, open - first);
  }
  return name;
}

/// "member: the line with {was -> now}", told apart by a number where two are alike.
std::string describe(const Kernel& kernel, const Change& change, std::map<std::string, int>& seen) {
  const std::string& text = kernel.text;
  const std::size_t begin = text.rfind('\n', change.at) + 1, end = text.find('\n', change.at + change.length);
  std::string line = text.substr(begin, change.at - begin) + "{" + text.substr(change.at, change.length) + " -> " +
                     change.now + "}" + text.substr(change.at + change.length, end - change.at - change.length);
  line.erase(0, line.find_first_not_of(' '));
  for (std::size_t n; (n = line.find('\n')) != std::string::npos;) {
    line.replace(n, line.find_first_not_of(" \n", n) - n, " ");
  }
  std::string name = kernel.file + "." + function_of(text, change.at) + ": " + line;
  const int count = ++seen[name];
  return count == 1 ? name : name + " #" + std::to_string(count);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "\"";
}

/// What the operators of the kernel have.
std::string trait_of(const Kernel& kernel) {
  return kernel.file == "linear" ? "state" : kernel.file == "merge" ? "parts" : "scores";
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) throw std::runtime_error("usage: generate_mutants OUT PARTS SOURCE=CLASS ...");
  const std::filesystem::path out = argv[1];
  const std::size_t parts = std::stoul(argv[2]);
  std::filesystem::create_directories(out);
  std::vector<std::string> copies(parts);
  std::string rows, includes = "#include \"tests/mutants/mutant.h\"\n";
  std::size_t number = 0;
  for (int n = 3; n < argc; ++n) {
    const std::string argument = argv[n];
    const std::size_t split = argument.find('=');
    if (split == std::string::npos) throw std::runtime_error(argument + " is no SOURCE=CLASS");
    const Kernel kernel = read_kernel(argument.substr(0, split), argument.substr(split + 1));
    includes += kernel.includes;
    std::map<std::string, int> seen;
    const Finder finder(kernel);
    for (const Change& change : finder.changes()) {
      const std::string id = "m" + std::to_string(number);
      std::string text = kernel.text;
      text.replace(change.at, change.length, change.now);
      copies[number % parts] +=
          "namespace attest::mutants::" + id + " {\nnamespace {\n" + text +
          "}\nstd::unique_ptr<Backend> make(const Context&) {\n  return std::make_unique<MutantBackend<" +
          kernel.class_name + "<float>>>(\"" + id + "\", " + ("&OperatorTraits::" + trait_of(kernel)) + ");\n}\n}\n";
      rows += "ATTEST_MUTANT(" + id + ", " + quoted(describe(kernel, change, seen)) + ")\n";
      ++number;
    }
  }
  for (std::size_t n = 0; n < parts; ++n) {
    std::ofstream(out / ("mutants_" + std::to_string(n) + ".cpp")) << includes << copies[n];
  }
  std::ofstream(out / "mutants.inc") << rows;
  std::printf("%zu mutants\n", number);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "generate_mutants: %s\n", error.what());
  return 2;
}
