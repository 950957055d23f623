// attest support
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/base/text.h"
#include "harness/base/user_error.h"
#include "harness/cli/command.h"
#include "harness/report/check_results.h"
#include "harness/report/support_matrix.h"
#include "reference/base/nearest.h"

namespace attest {
namespace {

struct SupportRequest {
  std::vector<std::string> files;
  std::string backend;
  OutputOptions output;
};

/// The backend that is asked for, or the only one that the files have.
std::string backend_of(const SupportRequest& request, const std::vector<CheckResults>& results) {
  std::set<std::string> names;
  for (const CheckResults& one : results) {
    for (const Verdict& verdict : one.verdicts) names.insert(verdict.backend);
  }
  if (names.contains(request.backend)) return request.backend;
  if (request.backend.empty() && names.size() == 1) return *names.begin();
  const std::vector<std::string> list(names.begin(), names.end());
  if (list.empty()) throw UserError("these files hold no verdict; name files of `attest check --json`");
  if (!request.backend.empty())
    throw UserError("--backend " + request.backend +
                    ": these files have none of its verdicts; nearest: " + nearest_name(request.backend, list));
  std::string known;
  for (const std::string& name : list) known += (known.empty() ? "" : ", ") + name;
  throw UserError("these files have several backends; name one with --backend: " + known);
}

int run(const SupportRequest& request) {
  std::vector<CheckResults> results;
  for (const std::string& file : request.files) results.push_back(read_check(std::filesystem::path(file)));
  const std::string backend = backend_of(request, results);
  SupportMatrix matrix;
  for (const CheckResults& one : results) {
    for (const Verdict& verdict : one.verdicts) {
      if (verdict.backend == backend) matrix.add(verdict);
    }
  }
  if (!request.output.for_programs())
    fmt::print("{}: {} verdicts; a case counts for each option that it has\n\n", printable_line(backend),
               matrix.verdicts());
  fmt::print("{}", matrix.table().printed(request.output.table()));
  if (matrix.left_out() > 0)
    fmt::print(stderr, "attest: {} verdicts on files of tensors are left out: results don't tell their options\n",
               matrix.left_out());
  return matrix.verdicts() > 0 ? kOk : kNothingChecked;
}

}  // namespace

void add_support(CLI::App& app, Invocation& invocation) {
  const auto request = std::make_shared<SupportRequest>();
  auto* sub =
      add_command(app, "support", "What a backend can do, from results: options by types, right, wrong or refused.",
                  "attest support matrix.jsonl --backend eigen --format markdown");
  sub->add_option("files", request->files, "Files of `attest check --json`")->required()->type_name("FILE");
  sub->add_option("--backend", request->backend, "Whose verdicts; may be left out where the files have one backend")
      ->type_name("NAME");
  add_format_option(*sub, request->output, "The table");
  sub->callback([request, &invocation] { invocation.exit_code = run(*request); });
}

}  // namespace attest
