#include "tests/mpi/spanning.h"

#include <mpi.h>

#include <memory>
#include <optional>
#include <utility>

#include "backends/group.h"
#include "backends/registry.h"
#include "backends/support/group/members.h"

namespace attest {
namespace {

/// How many ranks came.
int count_ranks(const Group& group) {
  const int own = 1;
  int all = 0;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, *static_cast<const MPI_Comm*>(group.communicator));
  return all;
}

class SpanningPlan : public Plan {
 public:
  SpanningPlan(std::unique_ptr<Plan> inner, support::Members& members) : inner_(std::move(inner)), members_(members) {}

  void upload(const Inputs& inputs) override { inner_->upload(inputs); }
  void run() override {
    members_.together({}, [&] {
      inner_->run();
      if (count_ranks(members_.group()) != members_.group().size) throw BackendError("a rank did not come");
    });
  }
  void download(const Outputs& outputs) override { inner_->download(outputs); }

 private:
  std::unique_ptr<Plan> inner_;
  support::Members& members_;
};

class SpanningBackend : public Backend, public GroupMember {
 public:
  explicit SpanningBackend(const Context& context) : context_(context) {
    if (!context.group || context.group->rank == 0) members_.emplace(context, "spans");
    for (const BackendEntry& entry : registered_backends()) {
      if (entry.name == "example") inner_ = entry.make({context.threads, context.device});
    }
    if (!inner_) throw BackendUnavailable("the example backend was not built");
  }

  Identity identity() const override { return {"spans", "correct loops", "a group of ranks"}; }
  int contract() const override { return inner_->contract(); }
  std::optional<Refusal> refuse(const Call& call) const override { return inner_->refuse(call); }
  Arithmetic arithmetic(const Call& call) const override { return inner_->arithmetic(call); }
  Conventions conventions() const override { return inner_->conventions(); }
  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<SpanningPlan>(inner_->prepare(call), *members_);
  }
  void take_part(std::span<const std::byte>) override { count_ranks(*context_.group); }

 private:
  Context context_;
  std::optional<support::Members> members_;
  std::unique_ptr<Backend> inner_;
};

}  // namespace

BackendEntry spanning_backend() {
  return {"spans", [](const Context& context) { return std::make_unique<SpanningBackend>(context); }, "", ""};
}

}  // namespace attest
