// Dependencies point one way: every #include and import of the project against the tables of harness/README.md.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders[] = {"reference", "backends", "harness", "tests", "scripts"};

/// A row of a table: where it stands for, and what sources there may include besides their own place.
struct Row {
  std::vector<std::string> allowed;  ///< files, or folders with a / at the end
  bool standard_library_only = false;
};

/// Rows by place: a file, a folder with a / at the end, or "backends/*/", each folder of which is a place by itself.
using Table = std::map<std::string, Row>;

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// The cells of "| a | b |"; empty for other lines.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  if (!line.starts_with("| ")) return cells;
  for (std::size_t from = 1, end; (end = line.find('|', from)) != std::string::npos; from = end + 1) {
    cells.push_back(line.substr(from, end - from));
  }
  return cells;
}

/// What stands between backquotes in a cell.
std::vector<std::string> names_in(const std::string& cell) {
  std::vector<std::string> names;
  for (std::size_t from = cell.find('`'); from != std::string::npos; from = cell.find('`', from)) {
    const std::size_t end = cell.find('`', from + 1);
    if (end == std::string::npos) break;
    names.push_back(cell.substr(from + 1, end - from - 1));
    from = end + 1;
  }
  return names;
}

/// Rows of the table under the heading that starts with "| <first>".
std::vector<std::vector<std::string>> rows_under(const std::vector<std::string>& lines, const std::string& first) {
  std::vector<std::vector<std::string>> rows;
  auto line =
      std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.starts_with("| " + first + " |"); });
  for (; line != lines.end() && line->starts_with("|"); ++line) {
    const auto cells = cells_of(*line);
    if (!cells.empty() && !names_in(cells.front()).empty()) rows.push_back(cells);
  }
  return rows;
}

/// Both tables; a module takes what the row of `harness/` has, too.
Table read_tables(const fs::path& readme) {
  const std::vector<std::string> lines = lines_of(readme);
  Table table;
  for (const auto& cells : rows_under(lines, "folder")) {
    table[names_in(cells.front()).front()] = {names_in(cells.back()),
                                              cells.back().find("the standard library") != std::string::npos};
  }
  std::vector<std::string> above;
  const std::vector<std::string> outside = table["harness/"].allowed;
  for (const auto& cells : rows_under(lines, "module")) {
    const std::string place = "harness/" + names_in(cells.front()).front();
    Row row{outside, false};
    for (const std::string& module : names_in(cells.back())) row.allowed.push_back("harness/" + module + "/");
    if (cells.back().find("all above") != std::string::npos) {
      row.allowed.insert(row.allowed.end(), above.begin(), above.end());
    }
    table[place] = row;
    above.push_back(place);
  }
  return table;
}

bool covers(const std::string& place, const std::string& path) {
  return place.ends_with('/') ? path.starts_with(place) : path == place;
}

/// Whether the place holds modules, so that no source lies in it itself, and each of its folders is one of them.
bool holds_modules(const Table& table, const std::string& place) {
  return place.starts_with("harness/") && place.ends_with('/') &&
         std::any_of(table.begin(), table.end(), [&](const auto& other) {
           return other.first != place && other.first.ends_with('/') && other.first.starts_with(place);
         });
}

/// Whether anything but Markdown lies in the folder.
bool holds_files_other_than_pages(const fs::path& folder) {
  const fs::recursive_directory_iterator entries(folder);
  return std::any_of(fs::begin(entries), fs::end(entries), [](const fs::directory_entry& entry) {
    return entry.is_regular_file() && entry.path().extension() != ".md";
  });
}

/// The most special place that holds the file, with a `*` replaced by the folder that it stands for.
std::optional<std::pair<std::string, const Row*>> place_of(const Table& table, const std::string& path) {
  std::optional<std::pair<std::string, const Row*>> best;
  for (const auto& [pattern, row] : table) {
    std::string place = pattern;
    if (const std::size_t star = pattern.find('*'); star != std::string::npos) {
      const std::size_t slash = path.find('/', star);
      if (slash == std::string::npos) continue;
      place = pattern.substr(0, star) + path.substr(star, slash - star) + pattern.substr(star + 1);
      if (table.contains(place)) continue;  // it has a row of its own
    }
    if (covers(place, path) && (!best || place.size() > best->first.size())) best = {place, &row};
  }
  return best;
}

/// What a source includes, as written.
std::vector<std::string> includes_of(const fs::path& path) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(path)) {
    const std::size_t hash = line.find_first_not_of(" \t");
    if (hash == std::string::npos || line[hash] != '#') continue;
    const std::size_t word = line.find_first_not_of(" \t", hash + 1);
    if (word == std::string::npos || line.compare(word, 7, "include") != 0) continue;
    const std::size_t open = line.find_first_of("\"<", word);
    if (open == std::string::npos) continue;
    names.push_back(line.substr(open + 1, line.find_first_of("\">", open + 1) - open - 1));
  }
  return names;
}

/// The folders that Python finds modules in: those of its sources, and above packages.
std::set<fs::path> module_folders(const fs::path& root) {
  std::set<fs::path> folders;
  for (const char* top : kFolders) {
    if (!fs::exists(root / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.path().extension() != ".py") continue;
      fs::path folder = entry.path().parent_path();
      while (fs::exists(folder / "__init__.py")) folder = folder.parent_path();
      folders.insert(folder);
    }
  }
  return folders;
}

/// The project's files that a Python source imports. Modules of others lie in no folder of the project; of two of one
/// name the one beside the source is meant.
std::vector<std::string> imports_of(const fs::path& root, const fs::path& path, const std::set<fs::path>& folders) {
  std::vector<fs::path> places = {path.parent_path()};
  places.insert(places.end(), folders.begin(), folders.end());
  std::vector<std::string> files;
  const auto add = [&](std::string module) {
    std::replace(module.begin(), module.end(), '.', '/');
    for (const fs::path& place : places) {
      for (const fs::path& file : {place / (module + ".py"), place / module / "__init__.py"}) {
        if (!fs::exists(file)) continue;
        files.push_back(fs::relative(file, root).generic_string());
        return;
      }
    }
  };
  static const std::regex import_line(R"(^\s*import ([\w., ]+))"),
      from_line(R"(^\s*from (\.*)([\w.]*) import \(?([\w, ]+))"), word(R"([\w.]+)");
  for (const std::string& line : lines_of(path)) {
    std::smatch found;
    const bool whole = std::regex_search(line, found, import_line);
    if (!whole && !std::regex_search(line, found, from_line)) continue;
    const std::string names = found[whole ? 1 : 3], package = whole ? "" : found[2].str();
    if (!package.empty()) add(package);
    for (std::sregex_iterator name(names.begin(), names.end(), word), end; name != end; ++name) {
      add(package.empty() ? name->str() : package + "." + name->str());  // "as other" names nothing that is there
    }
  }
  return files;
}

/// A circle of a graph as "a -> b -> a"; empty when there is none.
std::string circle_in(const std::map<std::string, std::set<std::string>>& graph) {
  std::set<std::string> done;
  std::vector<std::string> path;
  const std::function<std::string(const std::string&)> visit = [&](const std::string& node) -> std::string {
    if (done.contains(node)) return "";
    const auto seen = std::find(path.begin(), path.end(), node);
    if (seen != path.end()) {
      std::string circle;
      for (auto step = seen; step != path.end(); ++step) circle += *step + " -> ";
      return circle + node;
    }
    path.push_back(node);
    if (const auto next = graph.find(node); next != graph.end()) {
      for (const std::string& to : next->second) {
        if (std::string circle = visit(to); !circle.empty()) return circle;
      }
    }
    path.pop_back();
    done.insert(node);
    return "";
  };
  for (const auto& [node, next] : graph) {
    if (std::string circle = visit(node); !circle.empty()) return circle;
  }
  return "";
}

/// Everything in the project under `root` that its tables do not allow, a sentence each.
std::vector<std::string> layering_faults(const fs::path& root) {
  std::vector<std::string> faults;
  const Table table = read_tables(root / "harness" / "README.md");
  for (const auto& [place, row] : table) {
    if (place.find('*') == std::string::npos && !fs::exists(root / place)) faults.push_back(place + " does not exist");
  }
  std::set<std::string> unnamed;
  std::map<std::string, std::set<std::string>> places, headers;
  const std::set<fs::path> folders = module_folders(root);
  for (const char* top : kFolders) {
    if (!fs::exists(root / top)) continue;
    for (auto entries = fs::recursive_directory_iterator(root / top); entries != fs::end(entries); ++entries) {
      const fs::directory_entry& entry = *entries;
      const std::string path = fs::relative(entry.path(), root).generic_string();
      if (entry.is_directory() &&
          entry.path().filename() == "build") {  // what is built or installed, libraries of others
        entries.disable_recursion_pending();
        continue;
      }
      if (entry.is_directory() && !table.contains(path + "/") && holds_files_other_than_pages(entry.path()) &&
          holds_modules(table, fs::path(path).parent_path().generic_string() + "/")) {
        faults.push_back(path + "/ has no row");
      }
      const fs::path extension = entry.path().extension();
      const bool python = extension == ".py";
      if (extension != ".h" && extension != ".cpp" && !python) continue;
      const auto place = place_of(table, path);
      if (!place) {
        faults.push_back(path + " lies in no place that has a row");
        continue;
      }
      const auto& [own, row] = *place;
      if (holds_modules(table, own)) faults.push_back(path + " lies in no module");
      for (const std::string& name : python ? imports_of(root, entry.path(), folders) : includes_of(entry.path())) {
        const fs::path beside = fs::path(path).parent_path() / name;
        const std::string to = fs::exists(root / name) ? name : beside.lexically_normal().generic_string();
        if (!fs::exists(root / to)) {
          // A header of a library, or one that the build writes.
          const bool standard = name.find_first_of("/.") == std::string::npos;
          if (row->standard_library_only && !standard) faults.push_back(path + " includes " + name);
          continue;
        }
        const bool allowed = covers(own, to) || std::any_of(row->allowed.begin(), row->allowed.end(),
                                                            [&](const auto& a) { return covers(a, to); });
        if (!allowed) faults.push_back(path + (python ? " imports " : " includes ") + to);
        if (const auto target = place_of(table, to); target && target->first != own) places[own].insert(target->first);
        if (path.ends_with(".h")) headers[path].insert(to);
      }
    }
  }
  if (const std::string circle = circle_in(places); !circle.empty()) faults.push_back("circle: " + circle);
  if (const std::string circle = circle_in(headers); !circle.empty()) faults.push_back("circle: " + circle);
  std::sort(faults.begin(), faults.end());
  return faults;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(Layering, EveryIncludeFollowsTheTables) { EXPECT_EQ(joined(layering_faults(ATTEST_SOURCE_DIR)), ""); }

TEST(Layering, TheHarnessHasFewModules) {
  const Table table = read_tables(fs::path(ATTEST_SOURCE_DIR) / "harness" / "README.md");
  std::size_t modules = 0;
  for (const auto& [place, row] : table) modules += place.starts_with("harness/") && place.ends_with("/");
  EXPECT_GE(modules, 2u);
}

/// A project of a few files, deleted at the end, in which one thing is wrong.
class SmallProject : public testing::Test {
 protected:
  SmallProject() : root_(fs::path(testing::TempDir()) / ("layering." + std::to_string(getpid()))) {
    write("harness/README.md",
          "| module | holds | may include |\n|---|---|---|\n"
          "| `base/` | what knows nothing | - |\n| `cases/` | cases | `base` |\n| `cli/` | commands | all above |\n\n"
          "| folder | may include |\n|---|---|\n"
          "| `reference/` | the standard library |\n| `backends/backend.h` | `reference/` |\n| `backends/registry.h` | "
          "- |\n"
          "| `backends/*/` | `backends/backend.h` |\n| `harness/` | `reference/`, `backends/backend.h` |\n"
          "| `harness/cli/main.cpp` | `harness/cli/`, `backends/registry.h` |\n"
          "| `tests/` | `reference/`, `backends/`, `harness/` |\n");
    write("reference/call/problem.h", "#include <vector>\n");
    write("backends/backend.h", "#include \"reference/call/problem.h\"\n");
    write("backends/registry.h", "");
    write("backends/one/one.cpp", "#include <omp.h>\n#include \"backends/backend.h\"\n");
    write("backends/two/two.h", "#include \"backends/backend.h\"\n");
    write("harness/base/file.h", "#include <unistd.h>\n");
    write("harness/cases/case.h", "#include \"harness/base/file.h\"\n#include \"reference/call/problem.h\"\n");
    write("harness/cli/check.cpp", "#include \"harness/cases/case.h\"\n#include \"backends/backend.h\"\n");
    write("harness/cli/main.cpp", "#include \"backends/registry.h\"\n");
    write("tests/case_test.cpp", "#include \"harness/cases/case.h\"\n#include \"backends/two/two.h\"\n");
  }
  ~SmallProject() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string faults() const { return joined(layering_faults(root_)); }

  fs::path root_;
};

TEST_F(SmallProject, IsSoundAsItIs) { EXPECT_EQ(faults(), ""); }

TEST_F(SmallProject, WhatIsBuiltOrInstalledIsNotLookedAt) {
  write("backends/peers/build/one/circle.h", "#include \"backends/peers/build/one/circle.h\"\n");
  EXPECT_EQ(faults(), "");
}

TEST_F(SmallProject, AnArrowAgainstTheTableIsFound) {
  write("harness/base/up.h", "  #  include <harness/cases/case.h>\n");
  EXPECT_EQ(faults(),
            "circle: harness/base/ -> harness/cases/ -> harness/base/\n"
            "harness/base/up.h includes harness/cases/case.h\n");
}

TEST_F(SmallProject, AHeaderNamedWithoutItsFolderIsFoundToo) {
  write("harness/base/up.cpp", "#include \"../cases/case.h\"\n");
  EXPECT_NE(faults().find("harness/base/up.cpp includes harness/cases/case.h\n"), std::string::npos);
}

TEST_F(SmallProject, ABackendThatIncludesAnotherIsFound) {
  write("backends/one/more.cpp", "#include \"backends/two/two.h\"\n");
  EXPECT_EQ(faults(), "backends/one/more.cpp includes backends/two/two.h\n");
}

TEST_F(SmallProject, TheFourFoldersPointOneWay) {
  write("reference/a.cpp", "#include <fmt/format.h>\n#include \"backends/backend.h\"\n");
  write("backends/one/b.cpp", "#include \"harness/base/file.h\"\n");
  write("harness/cli/c.cpp", "#include \"backends/registry.h\"\n");
  write("tests/helper.h", "");
  write("harness/cases/d.cpp", "#include \"tests/helper.h\"\n");
  const std::string found = faults();
  for (const char* fault :
       {"reference/a.cpp includes fmt/format.h\n", "reference/a.cpp includes backends/backend.h\n",
        "backends/one/b.cpp includes harness/base/file.h\n", "harness/cli/c.cpp includes backends/registry.h\n",
        "harness/cases/d.cpp includes tests/helper.h\n"}) {
    EXPECT_NE(found.find(fault), std::string::npos) << fault << "was not found in:\n" << found;
  }
}

TEST_F(SmallProject, ImportsFollowTheTablesToo) {
  write("harness/cli/attest/__init__.py", "import json\nfrom attest import _load\n");
  write("harness/cli/attest/_load.py", "");
  write("tests/python/kernels.py", "import attest\n");
  write("backends/one/peer.py", "import two\n");
  EXPECT_EQ(faults(), "");
  write("harness/cli/attest/_load.py", "def load():\n    import json, kernels\n");
  write("backends/one/peer.py", "from attest._load import load\n");
  write("backends/two/two.py", "");
  write("backends/one/other.py", "from two import (attention,\n");
  EXPECT_EQ(faults(),
            "backends/one/other.py imports backends/two/two.py\n"
            "backends/one/peer.py imports harness/cli/attest/_load.py\n"
            "circle: harness/cli/ -> tests/ -> harness/cli/\n"
            "harness/cli/attest/_load.py imports tests/python/kernels.py\n");
}

TEST_F(SmallProject, ARoomWithoutARowAndARowWithoutARoomAreFound) {
  write("harness/attic/old.h", "");
  write("harness/loose.h", "");
  fs::remove_all(root_ / "harness" / "base");
  write("harness/cases/case.h", "");
  EXPECT_EQ(faults(),
            "harness/attic/ has no row\nharness/attic/old.h lies in no module\nharness/base/ does not exist\n"
            "harness/loose.h lies in no module\n");
}

TEST_F(SmallProject, ModulesWithinAModuleAreFoundToo) {
  std::string readme = joined(lines_of(root_ / "harness" / "README.md"));
  const std::string last = "| `cli/` |";
  readme.insert(readme.find(last), "| `speed/` | modules | - |\n| `speed/roof/` | the roof | `base` |\n");
  write("harness/README.md", readme);
  write("harness/speed/roof/roof.h", "#include \"harness/base/file.h\"\n");
  EXPECT_EQ(faults(), "");
  write("harness/speed/roof/roof.h", "#include \"harness/cases/case.h\"\n");
  write("harness/speed/attic/old.h", "");
  write("harness/speed/loose.h", "");
  EXPECT_EQ(faults(),
            "harness/speed/attic/ has no row\nharness/speed/attic/old.h lies in no module\n"
            "harness/speed/loose.h lies in no module\n"
            "harness/speed/roof/roof.h includes harness/cases/case.h\n");
}

TEST_F(SmallProject, OneRoomOfTheReferenceMayBeKeptFromABackend) {
  std::string readme = joined(lines_of(root_ / "harness" / "README.md"));
  const std::string backends = "| `backends/*/` | ", reference = "| `reference/` | the standard library |\n";
  readme.insert(readme.find(backends) + backends.size(), "`reference/call/`, ");
  readme.replace(readme.find(reference), reference.size(),
                 "| `reference/call/` | the standard library |\n"
                 "| `reference/softmax/` | `reference/call/`, the standard library |\n");
  write("harness/README.md", readme);
  write("reference/softmax/attention.h", "#include \"reference/call/problem.h\"\n");
  write("backends/one/more.h", "#include \"reference/call/problem.h\"\n");
  EXPECT_EQ(faults(), "");
  write("backends/one/more.h", "#include \"reference/softmax/attention.h\"\n");
  EXPECT_EQ(faults(), "backends/one/more.h includes reference/softmax/attention.h\n");
}

TEST_F(SmallProject, ACircleOfHeadersIsFound) {
  write("harness/cases/a.h", "#include \"harness/cases/b.h\"\n");
  write("harness/cases/b.h", "#include \"harness/cases/a.h\"\n");
  EXPECT_EQ(faults(), "circle: harness/cases/a.h -> harness/cases/b.h -> harness/cases/a.h\n");
}

}  // namespace
}  // namespace attest
