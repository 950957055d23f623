#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "backends/group.h"
#include "backends/support/group/wire.h"

namespace attest {
namespace {

using support::Letter;
using support::Verb;

/// What went wrong, never empty.
std::string failure_of(const std::exception& error) { return *error.what() ? error.what() : "failed without a reason"; }

/// A backend on this rank, of which rank 0 has another.
class OwnBackend {
 public:
  OwnBackend(Context context, std::span<const BackendEntry> backends, const Letter& letter) {
    std::string name(letter.content.size() - sizeof context.threads, '\0');
    std::memcpy(&context.threads, letter.content.data(), sizeof context.threads);
    std::memcpy(name.data(), letter.content.data() + sizeof context.threads, name.size());
    const auto entry = std::find_if(backends.begin(), backends.end(), [&](const auto& e) { return e.name == name; });
    if (entry == backends.end() || !entry->make) throw BackendError("there is no backend " + name + " here");
    backend_ = entry->make(context);
    member_ = dynamic_cast<GroupMember*>(backend_.get());
    if (!member_) throw BackendError("the backend " + name + " spans no processes");
  }

  void take_part(const Letter& letter) { member_->take_part(letter.content); }

 private:
  std::unique_ptr<Backend> backend_;
  GroupMember* member_ = nullptr;
};

}  // namespace

void take_part(const Context& context, std::span<const BackendEntry> backends) {
  std::map<std::uint64_t, OwnBackend> members;
  const Group& group = *context.group;
  for (;;) {
    const Letter letter = support::receive_letter(group);
    std::string failure;
    try {
      switch (letter.verb) {
        case Verb::open: members.try_emplace(letter.member, context, backends, letter); break;
        case Verb::tell: members.at(letter.member).take_part(letter); break;
        case Verb::close: members.erase(letter.member); continue;
        case Verb::release: return;
      }
    } catch (const std::exception& error) {
      failure = failure_of(error);
    }
    support::send_answer(group, failure);
  }
}

void release(const Group& group) { support::send_letter(group, Verb::release, 0, {}); }

}  // namespace attest
