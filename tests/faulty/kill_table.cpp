// Which suite catches which mistake. Exit code 1 when a mistake survives all suites, or the correct kernel is accused.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "harness/backend_set.h"
#include "harness/case.h"
#include "harness/run_case.h"
#include "tests/faulty/faulty.h"

int main() {
  using namespace attest;
  // "unit" is one line that no suite holds: its mask spans 2.2 GB, for an index beyond 32 bits (a unit test runs it
  // too).
  const std::vector<std::string> suites = {"smoke", "bugs",   "walkthroughs", "captures",
                                           "onnx",  "linear", "matrix",       "unit"};
  const char* beyond_32_bits = "batch=2 seq=4 dim=4 mask=bool:BHQK:random(0.5) mask.strides=2200000000,16,4,1";
  const BackendSet backends(faulty::faulty_backends(), {}, {1, ""});
  // Number of the first case that failed, from 1; 0: the mistake survived the suite.
  std::map<std::string, std::map<std::string, std::size_t>> killed_by;

  for (const std::string& suite : suites) {
    std::vector<Backend*> alive = backends.all();
    std::size_t number = 0;
    if (suite == "unit") std::erase_if(alive, [&](Backend* b) { return !killed_by[b->identity().name].empty(); });
    std::vector<Case> cases;
    if (suite == "unit")
      cases.push_back(case_from_line(beyond_32_bits));
    else
      cases = load_suite(find_suite(suite));
    for (const Case& source : cases) {
      ++number;
      if (alive.empty()) break;
      const PreparedCase prepared(source, alive, 2);
      std::erase_if(alive, [&](Backend* backend) {
        if (prepared.check(*backend).status != Status::fail) return false;
        killed_by[backend->identity().name][suite] = number;
        return true;
      });
    }
  }

  std::printf("case by which a suite catches the mistake, counted from 1; - when it does not\n\n%-28s", "mistake");
  for (const std::string& suite : suites) std::printf(" %12s", suite.c_str());
  std::printf("\n");
  int survivors = 0, accused = 0;
  for (Backend* backend : backends.all()) {
    const std::string name = backend->identity().name;
    std::printf("%-28s", name.c_str());
    for (const std::string& suite : suites) {
      const std::size_t at = killed_by[name][suite];
      std::printf(" %12s", at == 0 ? "-" : std::to_string(at).c_str());
    }
    std::size_t killed = 0;
    for (const char* suite : {"smoke", "bugs", "linear", "matrix", "unit"}) killed += killed_by[name][suite];
    std::printf("   %s\n", std::string(faulty::description(name)).c_str());
    if (name == "correct")
      accused += killed > 0;
    else
      survivors += killed == 0;
  }
  std::printf("\n%zu mistakes, %d survived, correct kernel accused: %d\n", backends.all().size() - 1, survivors,
              accused);
  return survivors + accused == 0 ? 0 : 1;
}
