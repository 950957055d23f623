// The protocol of a group (backends/group.h), run as every rank of an mpirun: messages reach every member, failures of
// members and of rank 0 come back with their rank, backends that can't be made are unavailable, and release() ends all.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "backends/support/group/members.h"

namespace attest {
namespace {

class EchoMember : public Backend, public GroupMember {
 public:
  explicit EchoMember(const Context& context) : context_(context) {
    if (context.threads == 7) throw BackendUnavailable("seven threads");
  }
  Identity identity() const override { return {"echo", "", ""}; }
  int contract() const override { return 3; }
  Arithmetic arithmetic(const Call&) const override { return {}; }
  std::unique_ptr<Plan> prepare(const Call&) override { return nullptr; }

  /// "add": all ranks sum their numbers with rank 0. "fail": the last rank throws, after the sum as ever.
  void take_part(std::span<const std::byte> message) override {
    const std::string word(reinterpret_cast<const char*>(message.data()), message.size());
    int own = context_.group->rank * context_.threads, sum = 0;
    MPI_Reduce(&own, &sum, 1, MPI_INT, MPI_SUM, 0, *static_cast<const MPI_Comm*>(context_.group->communicator));
    if (word == "fail" && context_.group->rank == context_.group->size - 1) throw BackendError("told to fail");
  }

 private:
  Context context_;
};

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what.c_str());
  ++failures;
}

template <class Error, class Do>
std::string what_of(const Do& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void rank_0(const Group& group) {
  const MPI_Comm communicator = *static_cast<const MPI_Comm*>(group.communicator);
  const Context context{3, "", &group};
  support::Members members(context, "echo");
  const auto together = [&](support::Members& with, const std::string& word, bool throws) {
    int sum = -1;
    with.together(std::as_bytes(std::span(word)), [&] {
      const int own = 0;
      MPI_Reduce(&own, &sum, 1, MPI_INT, MPI_SUM, 0, communicator);
      if (throws) throw BackendError("rank 0 as well");
    });
    return sum;
  };
  const int ranks = group.size * (group.size - 1) / 2;
  expect(together(members, "add", false) == 3 * ranks, "every rank adds its number times its threads");
  const std::string last = "rank " + std::to_string(group.size - 1) + ": told to fail";
  expect(what_of<BackendError>([&] { together(members, "fail", false); }) == last, "a member's failure names its rank");
  expect(what_of<BackendError>([&] { together(members, "fail", true); }) == "rank 0 as well; " + last, "both failures");
  {
    support::Members others({2, "", &group}, "echo");
    expect(together(others, "add", false) == 2 * ranks, "a second backend has members and threads of its own");
    expect(together(members, "add", false) == 3 * ranks, "the first is still there");
  }
  expect(what_of<BackendUnavailable>([&] {
           support::Members unknown(context, "nobody");
         }).find("rank 1: there is no backend nobody here") == 0,
         "an unknown backend is unavailable");
  expect(what_of<BackendUnavailable>([&] {
           support::Members seven({7, "", &group}, "echo");
         }).find("rank 1: seven threads") == 0,
         "what keeps a rank from making it is the reason");
  const Group alone{0, 1, group.communicator};
  expect(what_of<BackendUnavailable>([&] {
           support::needed_group({1, "", &alone});
         }).find("mpirun -n 2") != std::string::npos,
         "a group of one is none");
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm communicator = MPI_COMM_WORLD;
  attest::Group group{0, 1, &communicator};
  MPI_Comm_rank(communicator, &group.rank);
  MPI_Comm_size(communicator, &group.size);
  if (group.rank == 0) {
    attest::rank_0(group);
    attest::release(group);
  } else {
    const attest::BackendEntry backends[] = {
        {"echo", [](const attest::Context& c) { return std::make_unique<attest::EchoMember>(c); }, ""}};
    attest::take_part({1, "", &group}, backends);
  }
  MPI_Finalize();
  if (group.rank == 0) std::puts(attest::failures == 0 ? "a group works" : "a group does not work");
  return attest::failures == 0 ? 0 : 1;
}
