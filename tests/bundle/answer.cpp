// answer BUNDLE ANSWERS BACKEND: answers a bundle of `attest export` as a device would: the inputs come
// from its files, and each case's results go to a file of the same name. Cases that the backend refuses stay without an
// answer.
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "backends/registry.h"
#include "harness/comparison/compare.h"
#include "harness/run/bundle.h"
#include "harness/run/stored_order.h"
#include "harness/verdict/plan_execution.h"
#include "tests/faulty/around.h"
#include "tests/faulty/faulty.h"

namespace attest {
namespace {

/// The tensors of a file in the storage that the call asks for.
CaseInputs read_inputs(const Problem& problem, const TensorFile& file) {
  CaseInputs inputs;
  for (const TensorId id : inputs_of(problem)) {
    const FileTensor& from = file.tensors.at(std::string(row_of(id).name));
    TensorStorage& to = inputs.add(problem, id);
    const StoredOrder order(problem, id);
    const std::size_t width = from.bytes.size() / static_cast<std::size_t>(std::max(order.size(), std::int64_t{1}));
    order.each([&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const auto at = static_cast<std::size_t>(to.place().element(b, h, l, d));
      if (is_packed_in_pairs(to.dtype())) {
        store_half_byte(to.memory().data(), to.place().element(b, h, l, d),
                        HalfBytes(from.bytes.data())[static_cast<std::int64_t>(order.at(b, h, l, d))]);
        return;
      }
      std::memcpy(to.memory().data() + at * width, from.bytes.data() + order.at(b, h, l, d) * width, width);
    });
  }
  return inputs;
}

/// Of the program, or a wrong one. Throws BackendUnavailable.
std::unique_ptr<Backend> backend_named(const std::string& name) {
  std::vector<BackendEntry> all(registered_backends().begin(), registered_backends().end());
  all.insert(all.end(), faulty::faulty_backends().begin(), faulty::faulty_backends().end());
  return faulty::make_named(all, name);
}

int answer(const std::filesystem::path& folder, const std::filesystem::path& answers, const std::string& name) {
  const std::unique_ptr<Backend> made = backend_named(name);
  Backend& backend = *made;
  std::filesystem::create_directories(answers);
  std::size_t answered = 0;
  for (const BundleCase& one : read_bundle(folder).cases) {
    const Case source = case_from_line(one.line);
    if (ask(backend, source.problem).refusal) continue;
    const CaseInputs inputs = read_inputs(source.problem, read_safetensors(folder / one.file));
    GuardedOutputs outputs(source.problem);
    walk_once(backend, source.problem, inputs.views(), outputs);
    TensorFile file;
    for (const TensorId id : results_of(source.problem))
      file.tensors[std::string(row_of(id).name)] = stored_tensor(source.problem, id, outputs.view(id));
    write_safetensors(answers / one.file, file);
    ++answered;
  }
  std::printf("%zu answers\n", answered);
  return answered > 0 ? 0 : 1;
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: answer BUNDLE ANSWERS BACKEND\n"), 2;
  try {
    return attest::answer(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "answer: %s\n", error.what()), 2;
  }
}
