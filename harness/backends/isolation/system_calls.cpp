// The layer of the sandbox for system calls: a filter made by libseccomp. What it lists fails with "Operation not
// permitted" or, where a C library has another way, with "Function not implemented".
#include "harness/backends/isolation/sandbox.h"

#if defined(ATTEST_HAS_SECCOMP)
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>
#endif

namespace attest {

#if defined(ATTEST_HAS_SECCOMP)
namespace {

/// To others by whatever way, more rights, or parts of the system that are attacked by themselves.
constexpr const char* kForbidden[] = {"socket",
                                      "connect",
                                      "bind",
                                      "listen",
                                      "accept",
                                      "accept4",
                                      "shmget",
                                      "shmat",
                                      "msgget",
                                      "semget",
                                      "mq_open",
                                      "ptrace",
                                      "process_vm_readv",
                                      "process_vm_writev",
                                      "process_madvise",
                                      "process_mrelease",
                                      "kcmp",
                                      "pidfd_open",
                                      "pidfd_getfd",
                                      "pidfd_send_signal",
                                      "tkill",
                                      "unshare",
                                      "setns",
                                      "mount",
                                      "umount2",
                                      "pivot_root",
                                      "chroot",
                                      "move_mount",
                                      "open_tree",
                                      "fsopen",
                                      "fsmount",
                                      "fsconfig",
                                      "fspick",
                                      "mount_setattr",
                                      "open_by_handle_at",
                                      "bpf",
                                      "perf_event_open",
                                      "userfaultfd",
                                      "memfd_create",  // memory that nobody counts
                                      "memfd_secret",
                                      "setsid",
                                      "keyctl",
                                      "add_key",
                                      "request_key",
                                      "init_module",
                                      "finit_module",
                                      "delete_module",
                                      "kexec_load",
                                      "kexec_file_load",
                                      "reboot",
                                      "swapon",
                                      "swapoff",
                                      "quotactl",
                                      "move_pages",
                                      "migrate_pages",
                                      "ioprio_set",
                                      "sched_setaffinity",  // a thread stays on the processors that it was given
                                      "acct",
                                      "syslog",
                                      "vhangup",
                                      "iopl",
                                      "ioperm"};
/// The C library asks another way when these aren't there.
constexpr const char* kUnknown[] = {"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"};

/// Calls that may concern this process, or with 0 whoever asks, and nobody else: by the number of the argument.
struct OfOneself {
  const char* name;
  unsigned argument;
  bool by_number;  ///< the process is named; otherwise 0 is
};
constexpr OfOneself kOfOneself[] = {{"kill", 0, true},
                                    {"tgkill", 0, true},
                                    {"rt_sigqueueinfo", 0, true},
                                    {"rt_tgsigqueueinfo", 0, true},
                                    {"prlimit64", 0, false},
                                    {"sched_setscheduler", 0, false},
                                    {"sched_setparam", 0, false},
                                    {"sched_setattr", 0, false},
                                    {"setpriority", 1, false}};

/// What sends a signal, and the number of the argument that is the signal.
constexpr std::pair<const char*, unsigned> kSignals[] = {
    {"kill", 1}, {"tgkill", 2}, {"rt_sigqueueinfo", 1}, {"rt_tgsigqueueinfo", 2}};

constexpr std::uint64_t kLowHalf = 0xffffffff;  // of an argument that the kernel takes as an int

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ALLOW), seccomp_release) {}

  /// Names that this libseccomp doesn't know are new calls; those above are older than it.
  void forbid(const char* name, int error, const std::initializer_list<scmp_arg_cmp>& where = {}) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || !context_) return;
    const std::vector<scmp_arg_cmp> list(where);
    const int failed = seccomp_rule_add_array(context_.get(), SCMP_ACT_ERRNO(static_cast<unsigned>(error)), number,
                                              static_cast<unsigned>(list.size()), list.data());
    // A call of another architecture is none here.
    if (failed != 0 && failed != -EDOM && error_ == 0) error_ = failed;
  }

  std::string load() {
    if (!context_) return "no filter";
    seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_TSYNC, 1);
    if (error_ == 0) error_ = seccomp_load(context_.get());
    return error_ == 0 ? "" : std::strerror(-error_);
  }

 private:
  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int error_ = 0;
};

}  // namespace

std::string confine_system_calls(const SandboxRequest& request) {
  Filter filter;
  for (const char* name : kForbidden) filter.forbid(name, EPERM);
  for (const char* name : kUnknown) filter.forbid(name, ENOSYS);
  for (const OfOneself& one : kOfOneself) {
    const auto self = one.by_number ? static_cast<std::uint64_t>(getpid()) : 0;
    filter.forbid(one.name, EPERM, {scmp_arg_cmp{one.argument, SCMP_CMP_NE, self, 0}});
  }
  if (!request.processes) {  // threads alone
    filter.forbid("fork", EPERM);
    filter.forbid("vfork", EPERM);
    filter.forbid("clone", EPERM, {scmp_arg_cmp{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0}});
  }
  // A timer may send the signal on which a stopped process goes on; it could work while it must not.
  filter.forbid("timer_create", EPERM);
  // It must not go on by its own signal either, nor outlive the harness.
  for (const auto& [name, argument] : kSignals)
    filter.forbid(name, EPERM, {scmp_arg_cmp{argument, SCMP_CMP_MASKED_EQ, kLowHalf, SIGCONT}});
  filter.forbid("prctl", EPERM, {scmp_arg_cmp{0, SCMP_CMP_MASKED_EQ, kLowHalf, PR_SET_PDEATHSIG}});
  // The group of processes has the harness in it.
  filter.forbid("setpriority", EPERM, {scmp_arg_cmp{0, SCMP_CMP_NE, PRIO_PROCESS, 0}});
  // Words typed into the user's terminal, and signals that a file sends.
  for (const unsigned long number : {TIOCSTI, TIOCLINUX})
    filter.forbid("ioctl", EPERM, {scmp_arg_cmp{1, SCMP_CMP_MASKED_EQ, kLowHalf, number}});
  for (const int command : {F_SETOWN, F_SETOWN_EX, F_SETSIG})
    filter.forbid("fcntl", EPERM, {scmp_arg_cmp{1, SCMP_CMP_MASKED_EQ, kLowHalf, static_cast<std::uint64_t>(command)}});
  return filter.load();
}

#else

std::string confine_system_calls(const SandboxRequest&) { return "attest was built without libseccomp"; }

#endif

}  // namespace attest
