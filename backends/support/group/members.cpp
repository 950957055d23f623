#include "backends/support/group/members.h"

#include <atomic>
#include <cstring>
#include <vector>

#include "backends/support/group/wire.h"

namespace attest::support {
namespace {

std::string joined(const std::vector<std::string>& sentences) {
  std::string all;
  for (const std::string& sentence : sentences) all += (all.empty() ? "" : "; ") + sentence;
  return all;
}

}  // namespace

const Group& needed_group(const Context& context) {
  if (context.group && context.group->size > 1) return *context.group;
  throw BackendUnavailable(
      "attention that spans processes: start it as mpirun -n 2 attest check --ranks-per-case 2, or with more ranks");
}

Members::Members(const Context& context, std::string_view backend) : group_(needed_group(context)) {
  static std::atomic<std::uint64_t> made{0};
  member_ = made++;
  std::vector<std::byte> content(sizeof context.threads + backend.size());
  std::memcpy(content.data(), &context.threads, sizeof context.threads);
  std::memcpy(content.data() + sizeof context.threads, backend.data(), backend.size());
  send_letter(group_, Verb::open, member_, content);
  const std::vector<std::string> failures = receive_answers(group_);
  if (failures.empty()) return;
  send_letter(group_, Verb::close, member_, {});
  throw BackendUnavailable(joined(failures));
}

Members::~Members() { send_letter(group_, Verb::close, member_, {}); }

void Members::together(std::span<const std::byte> message, const std::function<void()>& own) {
  send_letter(group_, Verb::tell, member_, message);
  std::vector<std::string> failures;
  try {
    own();
  } catch (const std::exception& error) {
    failures.emplace_back(error.what());
  }
  for (std::string& failure : receive_answers(group_)) failures.push_back(std::move(failure));
  if (!failures.empty()) throw BackendError(joined(failures));
}

}  // namespace attest::support
