// attest verify: answers to a bundle against its bounds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "harness/cli/verdict_files.h"
#include "harness/report/merge.h"
#include "harness/run/bundle_answers.h"
#include "reference/options/case_line.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

struct VerifyRequest {
  std::string bundle, answers, name;
  std::size_t number = 0;
  bool partial = false;
  VerdictFiles files;
};

/// The cases that are looked at.
std::vector<BundleCase> chosen(const Bundle& bundle, std::size_t number) {
  if (number == 0) return bundle.cases;
  if (number > bundle.cases.size())
    throw UserError(fmt::format("--case {}: the bundle has {} cases", number, bundle.cases.size()));
  return {bundle.cases[number - 1]};
}

int run(const VerifyRequest& request, const Invocation& invocation) {
  const Bundle bundle = read_bundle(request.bundle);
  if (!fs::is_directory(request.answers))
    throw UserError(request.answers + ": no folder; it holds a file for each case, named as in the bundle");
  const std::vector<BundleCase> cases = chosen(bundle, request.number);
  const std::string name = request.name.empty() ? "answers" : request.name;
  MergedRun judged;
  judged.info.command = invocation.words;
  judged.info.backends = {Identity{name, "read from files", "elsewhere"}};
  judged.info.cases = judged.info.verdicts = cases.size();
  Counts counts;
  const auto started = std::chrono::steady_clock::now();
  for (const BundleCase& one : cases) {
    Verdict verdict = verify(request.bundle, one, request.answers, request.partial ? Status::refused : Status::fail);
    verdict.backend = name;
    verdict.repro = fmt::format("attest verify {} {} --case {}", shell_quoted(request.bundle),
                                shell_quoted(request.answers), one.number);
    counts.add(verdict);
    judged.verdicts.push_back(std::move(verdict));
  }
  judged.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const std::vector<std::string> unwritten = tell(judged, open_reports(request.files));
  return exit_code_of(counts, unwritten, false, "nothing passed");
}

}  // namespace

void add_verify(CLI::App& app, Invocation& invocation) {
  const auto request = std::make_shared<VerifyRequest>();
  auto* sub = add_command(app, "verify", "Judge answers to a bundle of `attest export` that came back from anywhere.",
                          "attest verify bundle answers");
  sub->add_option("bundle", request->bundle, "The folder that `attest export` wrote")->type_name("BUNDLE")->required();
  sub->add_option("answers", request->answers,
                  "A folder with a .safetensors file for each case, named as in the bundle, that holds the results")
      ->type_name("ANSWERS")
      ->required();
  sub->add_option("--case", request->number, "Only this one, by its number in the bundle")->check(CLI::PositiveNumber);
  sub->add_flag("--partial", request->partial, "A case without an answer counts as refused, not as a failure");
  sub->add_option("--name", request->name, "What verdicts call the implementation; default: answers");
  add_verdict_files(*sub, request->files);
  sub->callback([request, &invocation] { invocation.exit_code = run(*request, invocation); });
}

}  // namespace attest
