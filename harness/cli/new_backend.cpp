// attest new-backend: a working skeleton, from the examples that come with attest.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "harness/base/data_folder.h"
#include "harness/base/output_file.h"
#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

struct NewBackendOptions {
  std::string name;
  bool in_tree = false, plugin = false, python = false;
};

/// What a file with words of an example becomes.
using Words = std::vector<std::pair<std::string, std::string>>;

std::string replaced(std::string text, const Words& words) {
  for (const auto& [from, to] : words) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }
  return text;
}

/// my_kernel is MyKernel as a type.
std::string type_name(const std::string& name) {
  std::string type;
  bool large = true;
  for (const char c : name) {
    if (c != '_') type += large && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    large = c == '_';
  }
  return type;
}

void check_name(const std::string& name, std::span<const BackendEntry> registry) {
  if (!is_backend_name(name)) {
    throw UserError("\"" + name +
                    "\" is no name of a backend: lower-case letters, digits and _, a letter first, 64 at most");
  }
  const bool taken =
      std::any_of(registry.begin(), registry.end(), [&](const BackendEntry& e) { return e.name == name; });
  if (taken || name == "reference") throw UserError("\"" + name + "\" is taken: choose another name");
}

void write(const fs::path& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.finish();
  fmt::print("wrote {}\n", printable_line(path.string()));
}

/// The files of a folder that comes with attest, words replaced in names and texts.
void copy_example(const fs::path& from, const fs::path& to, const Words& words) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(from, error)) {
    const bool compiled = entry.path().parent_path().filename() == "__pycache__";  // by the installer
    if (entry.is_regular_file() && !compiled) files.push_back(entry.path());
  }
  if (fs::exists(to, error)) throw UserError(to.string() + " is there already: choose another name, or remove it");
  if (!fs::create_directories(to, error)) throw UserError(to.string() + ": can't be made: " + error.message());
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    const fs::path place = to / replaced(path.lexically_relative(from).string(), words);
    fs::create_directories(place.parent_path(), error);
    write(place, replaced(text.str(), words));
  }
}

constexpr const char* kInTreeCi =
    R"(# A job for .github/workflows: the backend on every case, in parts that end within minutes.
jobs:
  {0}:
    runs-on: ubuntu-latest
    container: debian:12
    strategy:
      matrix:
        part: [1, 2, 3, 4]
    steps:
      - uses: actions/checkout@v4
      - run: ./scripts/run.sh
      - run: build/bin/attest check --suite smoke --suite bugs --backend {0} --isolate
      - run: build/bin/attest check --suite matrix --backend {0} --shard ${{{{ matrix.part }}}}/4 --junit {0}.xml
)";

int run(const NewBackendOptions& options, std::span<const BackendEntry> registry) {
  check_name(options.name, registry);
  if (options.in_tree) {
    if (!fs::exists("backends/backend.h")) {
      throw UserError("--in-tree: backends/backend.h is not here: go to the folder that attest's sources lie in");
    }
    const fs::path to = fs::path("backends") / options.name;
    copy_example(required_data_folder("backends/example"), to,
                 {{"\"attest/", "\""}, {"example", options.name}, {"Example", type_name(options.name)}});
    write(to / "ci.yml", fmt::format(kInTreeCi, options.name));
    fmt::print(
        "\ncmake -S . -B build -G Ninja\nninja -C build attest\nbuild/bin/attest check --suite smoke --backend {}\n",
        options.name);
    return kOk;
  }
  if (options.python) {
    copy_example(required_data_folder("python"), options.name, {{"example_py", options.name}});
    fmt::print("\ncd {0}\npython -m pytest\npython -m attest check --suite smoke --python {0}:Kernel\n", options.name);
    return kOk;
  }
  copy_example(required_data_folder("backends/plugin/examples/c"), options.name, {{"example_c", options.name}});
  fmt::print("\ncmake -S {0} -B {0}/build\ncmake --build {0}/build\nctest --test-dir {0}/build --output-on-failure\n",
             options.name);
  return kOk;
}

}  // namespace

void add_new_backend(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<NewBackendOptions>();
  auto* sub =
      add_command(app, "new-backend", "Write a backend that works, with its build file, its test and a job for CI.",
                  "attest new-backend mine");
  sub->add_option("name", options->name, "Lower-case letters, digits and _")->required();
  auto* in_tree =
      sub->add_flag("--in-tree", options->in_tree, "In C++, as a folder of attest's sources, which lie here");
  auto* plugin = sub->add_flag("--plugin", options->plugin, "In C, as a shared library of its own (the default)")
                     ->excludes(in_tree);
  sub->add_flag("--python", options->python, "In Python, as a package of its own")->excludes(in_tree)->excludes(plugin);
  sub->callback([options, &invocation] { invocation.exit_code = run(*options, invocation.registry); });
}

}  // namespace attest
