#include "tests/mpi/spanning.h"

#include <mpi.h>

#include <memory>
#include <optional>
#include <utility>

#include "backends/group.h"
#include "backends/support/group/members.h"
#include "tests/faulty/around.h"

namespace attest {
namespace {

/// How many ranks came.
int count_ranks(const Group& group) {
  const int own = 1;
  int all = 0;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, *static_cast<const MPI_Comm*>(group.communicator));
  return all;
}

class SpanningPlan : public faulty::PlanAround {
 public:
  SpanningPlan(std::unique_ptr<Plan> inner, support::Members& members)
      : PlanAround(std::move(inner)), members_(members) {}

  void run() override {
    members_.together({}, [&] {
      inner_->run();
      if (count_ranks(members_.group()) != members_.group().size) throw BackendError("a rank did not come");
    });
  }

 private:
  support::Members& members_;
};

class SpanningBackend : public faulty::BackendAround, public GroupMember {
 public:
  explicit SpanningBackend(const Context& context)
      : BackendAround({"spans", "correct loops", "a group of ranks"}, faulty::make_example()), context_(context) {
    if (!context.group || context.group->rank == 0) members_.emplace(context, "spans");
  }

  std::unique_ptr<Plan> prepare(const Call& call) override {
    return std::make_unique<SpanningPlan>(inner_->prepare(call), *members_);
  }
  void take_part(std::span<const std::byte>) override { count_ranks(*context_.group); }

 private:
  Context context_;
  std::optional<support::Members> members_;
};

}  // namespace

BackendEntry spanning_backend() {
  return {"spans", [](const Context& context) { return std::make_unique<SpanningBackend>(context); }, "", ""};
}

}  // namespace attest
