// ring, ring_zigzag, head_parallel and key_parallel: attention spread over the ranks of a group, by the kernel of
// backends/support/eigen/. Rank 0 has the plan that the harness walks; each of its steps is one of all ranks.
#include <Eigen/Core>
#include <cstring>
#include <map>
#include <string>

#include "backends/backend.h"
#include "backends/ring/scheme.h"
#include "backends/ring/work.h"
#include "backends/support/eigen/packet_kernel.h"
#include "backends/support/group/members.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"

namespace attest::ring {
namespace {

enum class Step : std::uint8_t { prepare, upload, run, download, forget };

/// A step of plan `plan`; prepare also brings the call.
std::vector<std::byte> message_of(Step step, std::uint64_t plan, const std::string& call = "") {
  std::vector<std::byte> bytes(sizeof step + sizeof plan + call.size());
  std::memcpy(bytes.data(), &step, sizeof step);
  std::memcpy(bytes.data() + sizeof step, &plan, sizeof plan);
  std::memcpy(bytes.data() + sizeof step + sizeof plan, call.data(), call.size());
  return bytes;
}

class RingPlan : public Plan {
 public:
  RingPlan(Scheme scheme, const Call& call, support::Members& members, int threads, std::uint64_t number)
      : members_(members), number_(number) {
    try {
      members_.together(message_of(Step::prepare, number, print_call(call)),
                        [&] { work_ = make_work(scheme, call, members.group(), threads); });
    } catch (...) {
      forget();
      throw;
    }
  }
  ~RingPlan() override { forget(); }
  RingPlan(const RingPlan&) = delete;
  RingPlan& operator=(const RingPlan&) = delete;

  void upload(const Inputs& inputs) override {
    inputs_ = inputs;
    together(Step::upload, [&] { work_->upload(&inputs_); });
  }
  void run() override {
    together(Step::run, [&] { work_->run(); });
  }
  void download(const Outputs& outputs) override {
    together(Step::download, [&] { work_->download(&inputs_, &outputs); });
  }
  std::size_t workspace_bytes() const override { return work_->bytes(); }

 private:
  template <class Do>
  void together(Step step, const Do& own) {
    members_.together(message_of(step, number_), own);
  }
  void forget() {
    try {
      together(Step::forget, [] {});
    } catch (const BackendError&) {  // a destructor has nobody to tell
    }
  }

  support::Members& members_;
  std::uint64_t number_;
  std::unique_ptr<Work> work_;
  Inputs inputs_{};
};

/// On rank 0 what the harness sees, on the others a member of that.
class RingBackend : public Backend, public GroupMember {
 public:
  RingBackend(std::string_view name, Scheme scheme, const Context& context)
      : name_(name), scheme_(scheme), threads_(context.threads), group_(support::needed_group(context)) {
    if (group_.rank == 0) members_ = std::make_unique<support::Members>(context, name);
  }

  Identity identity() const override {
    return {std::string(name_),
            "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
                std::to_string(EIGEN_MINOR_VERSION) + " (" + Eigen::SimdInstructionSetsInUse() + "), " + mpi_version(),
            std::to_string(group_.size) + " ranks, CPU, " + std::to_string(threads_) + " thread(s) each"};
  }
  int contract() const override { return 3; }
  std::optional<Refusal> refuse(const Call& call) const override { return refuse_other_operators(call); }

  Arithmetic arithmetic(const Call& call) const override {
    Arithmetic a = support::packet_kernel_arithmetic(accumulator_of(call.dtype), support::kPacketTile);
    if (call.has_scores()) a.parts = merged_runs(scheme_, call, group_.size);
    a.stored_parts = a.accumulator;
    return a;
  }

  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<RingPlan>(scheme_, call, *members_, threads_, plans_++);
  }

  void take_part(std::span<const std::byte> message) override {
    Step step{};
    std::uint64_t number = 0;
    std::memcpy(&step, message.data(), sizeof step);
    std::memcpy(&number, message.data() + sizeof step, sizeof number);
    const auto rest = message.subspan(sizeof step + sizeof number);
    switch (step) {
      case Step::prepare: {
        const std::string line(reinterpret_cast<const char*>(rest.data()), rest.size());
        works_[number] = make_work(scheme_, parse_case(line), group_, threads_);
        break;
      }
      case Step::upload: works_.at(number)->upload(nullptr); break;
      case Step::run: works_.at(number)->run(); break;
      case Step::download: works_.at(number)->download(nullptr, nullptr); break;
      case Step::forget: works_.erase(number); break;
    }
  }

 private:
  static std::string mpi_version() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string all(text.data(), static_cast<std::size_t>(length));
    return all.substr(0, all.find(','));
  }

  std::string_view name_;
  Scheme scheme_;
  int threads_;
  const Group& group_;
  std::unique_ptr<support::Members> members_;             ///< on rank 0
  std::map<std::uint64_t, std::unique_ptr<Work>> works_;  ///< on other ranks
  std::uint64_t plans_ = 0;
};

}  // namespace
}  // namespace attest::ring

namespace attest {

std::unique_ptr<Backend> make_backend_ring(const Context& context) {
  return std::make_unique<ring::RingBackend>("ring", ring::Scheme::ring, context);
}
std::unique_ptr<Backend> make_backend_ring_zigzag(const Context& context) {
  return std::make_unique<ring::RingBackend>("ring_zigzag", ring::Scheme::ring_zigzag, context);
}
std::unique_ptr<Backend> make_backend_head_parallel(const Context& context) {
  return std::make_unique<ring::RingBackend>("head_parallel", ring::Scheme::head_parallel, context);
}
std::unique_ptr<Backend> make_backend_key_parallel(const Context& context) {
  return std::make_unique<ring::RingBackend>("key_parallel", ring::Scheme::key_parallel, context);
}

}  // namespace attest
