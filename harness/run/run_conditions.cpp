#include "harness/run/run_conditions.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "harness/backends/isolation/isolated_backend.h"
#include "harness/base/fingerprint.h"
#include "harness/base/machine.h"
#include "harness/tuning/parameters.h"

extern char** environ;

namespace attest {
namespace {

/// Variables that choose kernels, devices or numbers of threads. How a thread waits and where caches lie changes no
/// result; which of several devices a rank of a job has, stands with the backend.
bool changes_results(std::string_view variable) {
  for (const std::string_view other :
       {"ATTEST_OPENCL_NUMBER=", "OMP_WAIT_POLICY=", "OPENBLAS_THREAD_TIMEOUT=", "POCL_CACHE_DIR="}) {
    if (variable.starts_with(other)) return false;
  }
  for (const std::string_view prefix :
       {"ATTEST_OPENCL_", "BLIS_", "CLBLAST_", "CL_CONFIG_", "CUDA_VISIBLE_DEVICES=", "GLIBC_TUNABLES=", "GOMP_",
        "GOTO_NUM_THREADS=", "HIP_", "KMP_", "MKL_", "OCL_", "OMP_", "OPENBLAS_", "POCL_", "ROCR_"}) {
    if (variable.starts_with(prefix)) return true;
  }
  return false;
}

/// The names of those variables and a fingerprint of their values, which may be paths of this machine.
std::string environment() {
  std::set<std::string> variables;
  for (char** variable = environ; *variable; ++variable) {
    if (changes_results(*variable)) variables.insert(*variable);
  }
  if (variables.empty()) return "";
  Fingerprint values;
  std::string names;
  for (const std::string& variable : variables) {
    values.add(variable + '\n');
    names += variable.substr(0, variable.find('=')) + " ";
  }
  return names + values.text();
}

/// Some libraries begin as many threads as there are processors for the process, whatever --threads says.
std::string processors_allowed() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::to_string(CPU_COUNT(&set)) : "unknown";
}

}  // namespace

Conditions run_conditions(const BackendSet& backends, const Context& context,
                          const std::optional<IsolationOptions>& isolation, bool bitwise,
                          const std::vector<std::filesystem::path>& libraries,
                          const std::vector<std::filesystem::path>& of_job) {
  const auto without = [](const auto& some, const auto& others) {
    std::vector<std::filesystem::path> rest;
    std::set_difference(some.begin(), some.end(), others.begin(), others.end(), std::back_inserter(rest));
    return rest;
  };
  Conditions conditions;
  conditions["program"] = fingerprint_of("/proc/self/exe");
  conditions["libraries"] = fingerprint_of(without(libraries, of_job));
  const std::vector<std::filesystem::path> drivers = without(loaded_libraries(), libraries);
  if (!drivers.empty()) conditions["drivers"] = fingerprint_of(drivers);
  conditions["processor"] = this_machine().cpu;
  conditions["processors"] = processors_allowed();
  conditions["threads"] = std::to_string(context.threads);
  conditions["device"] = context.device;
  conditions["isolation"] =
      isolation ? fmt::format("steps of {} ms, {:g} GiB", isolation->limit.count(), isolation->memory_gib) : "";
  conditions["bitwise"] = bitwise ? "yes" : "no";
  conditions["environment"] = environment();
  for (const Backend* backend : backends.all()) {
    const Identity id = identity_of(*backend);
    const std::string code = worker_code(*backend), sandbox = sandbox_of(*backend);
    conditions["backend." + id.name] =
        description(id) + (code.empty() ? "" : ", code " + code) + (sandbox.empty() ? "" : ", sandbox: " + sandbox);
  }
  return conditions;
}

}  // namespace attest
