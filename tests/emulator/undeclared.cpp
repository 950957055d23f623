// undeclared [EVERY [FILE]]: kernels that round otherwise than they declare. Each rounds as one statement of the
// contract allows (every_statement) and declares plain float32, on every so many-th (default 1) of 136 lines: 17 kinds
// of data in 8 shapes. Prints how many lines catch it, by the bound alone and with the second tier.
// With FILE, which has `NAME | BY THE BOUND | CAUGHT`, exit code 1 where fewer are caught than it says,
// where a kernel that declares the truth is accused, or where a statement has no row. 2 for a wrong request.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/text.h"
#include "harness/cases/case.h"
#include "harness/verdict/prepared_case.h"
#include "reference/options/case_line.h"
#include "tests/emulator/declarations.h"

namespace attest::emulator {
namespace {

constexpr const char* kShapes[] = {
    "seq=1x3 dim=4",    "seq=4x16 dim=8",    "seq=2x64 dim=16", "heads=2 seq=3x33 dim=32",
    "seq=1x256 dim=64", "seq=2x100 dim=128", "seq=8 dim=64",    "seq=1x1000 dim=16"};
constexpr const char* kData[] = {"",
                                 "fill=spread(12)",
                                 "fill=spread(80)",
                                 "scale=1e-8",
                                 "fill=huge",
                                 "fill=cancel",
                                 "fill=uniform",
                                 "v.fill=constant(1)",
                                 "fill=ties",
                                 "fill=onehot",
                                 "k.fill=constant(1)",
                                 "fill=activations",
                                 "fill=mixed",
                                 "causal align=bottom-right",
                                 "mask=bool:11QK:random(0.1)",
                                 "fill=integer",
                                 "mask=add:11QK:wide"};

struct Caught {
  long by_bound = 0, at_all = 0;
};

std::vector<Case> drawn_cases(std::size_t every) {
  std::vector<Case> cases;
  std::size_t n = 0;
  for (const char* data : kData) {
    for (const char* shape : kShapes) {
      if (n++ % every == 0) cases.push_back(case_from_line(fmt::format("{} {} out=o,lse seed={}", shape, data, n)));
    }
  }
  return cases;
}

Caught caught(const std::vector<std::unique_ptr<PreparedCase>>& cells, Emulated emulated) {
  Caught count;
  for (const auto& cell : cells) {
    emulated.seed += 1;
    EmulatorBackend backend(emulated);
    const Status status = cell->check(backend).status;
    count.by_bound += status == Status::fail;
    count.at_all += status == Status::fail || status == Status::suspect;
  }
  return count;
}

std::map<std::string, Caught> read_wanted(const std::string& path) {
  std::ifstream file(path);
  std::map<std::string, Caught> wanted;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t first = line.find('|'), second = line.find('|', first + 1);
    if (second == std::string::npos) continue;
    wanted[std::string(trimmed(line.substr(0, first)))] = {std::atol(line.c_str() + first + 1),
                                                           std::atol(line.c_str() + second + 1)};
  }
  return wanted;
}

int run(std::size_t every, const std::string& path) {
  const Arithmetic plain = plain_arithmetic(DType::f32);
  EmulatorBackend liar({plain, plain});
  const std::vector<Case> cases = drawn_cases(every);
  std::vector<std::unique_ptr<PreparedCase>> cells;
  for (const Case& one : cases) {
    cells.push_back(std::make_unique<PreparedCase>(one, std::vector<Backend*>{&liar}, 1));
    cells.back()->run_once();
  }
  const std::map<std::string, Caught> wanted = path.empty() ? std::map<std::string, Caught>() : read_wanted(path);
  int wrong = 0;
  fmt::print("# of {} lines: name | caught by the bound | caught at all\n", cells.size());
  for (const Statement& statement : every_statement(DType::f32)) {
    Emulated emulated = statement.emulated;
    emulated.says = plain;
    const Caught count = caught(cells, emulated);
    fmt::print("{} | {} | {}\n", statement.name, count.by_bound, count.at_all);
    if (path.empty()) continue;
    const auto row = wanted.find(statement.name);
    const bool is_plain = emulated.does == plain;
    if (row == wanted.end() || count.by_bound < row->second.by_bound || count.at_all < row->second.at_all ||
        (is_plain && count.at_all > 0)) {
      fmt::print("  WRONG: {}\n",
                 row == wanted.end() ? "no row in " + path
                 : is_plain          ? "the truth is accused"
                            : fmt::format("at least {} and {} are wanted", row->second.by_bound, row->second.at_all));
      wrong += 1;
    }
  }
  return wrong > 0;
}

}  // namespace
}  // namespace attest::emulator

int main(int argc, char** argv) {
  const long every = argc > 1 ? std::atol(argv[1]) : 1;
  if (argc > 3 || every < 1) {
    fmt::print(stderr, "usage: undeclared [EVERY [FILE]]\n");
    return 2;
  }
  return attest::emulator::run(static_cast<std::size_t>(every), argc > 2 ? argv[2] : "");
}
