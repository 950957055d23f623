#include "tests/faulty/keeping.h"

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reference/call/launch.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"
#include "tests/faulty/around.h"
#include "tests/faulty/mistake.h"

namespace attest::faulty {
namespace {

enum class Keeping {
  honest,                ///< the twin without a mistake
  name_without_strides,  ///< what is kept of a call is found again by all of it but where its tensors lie
  name_without_type,
  name_without_mask,
  name_of_element_count,  ///< by the number of elements of the keys alone
  ring_of_results,        ///< results of all plans lie in a ring of four
  pool_of_buffers,        ///< a plan that is destroyed gives another's buffer away
  third_run,              ///< the third run on one upload is wrong
  sample_of_values,       ///< values are packed anew where a sample of them changed
  pack_by_address,        ///< keys and values that share their memory are packed once
  index_of_32_bits,       ///< strides times places are computed without sign in 32 bits
  whole_vectors,          ///< behind the dense rows of a head the rest of a vector of eight is written
  count
};

struct Name {
  std::string_view name;
};

constexpr std::array<Name, static_cast<std::size_t>(Keeping::count)> kNames = {{{"honest_keeper"},
                                                                                {"name_without_strides"},
                                                                                {"name_without_type"},
                                                                                {"name_without_mask"},
                                                                                {"name_of_element_count"},
                                                                                {"ring_of_results"},
                                                                                {"pool_of_buffers"},
                                                                                {"third_run"},
                                                                                {"sample_of_values"},
                                                                                {"pack_by_address"},
                                                                                {"index_of_32_bits"},
                                                                                {"whole_vectors"}}};

/// What plans of one backend have in common and shouldn't.
struct Common {
  std::map<std::string, std::string> first;  ///< of a name: the whole call that came first
  int runs = 0, destroyed = 0;
};

std::string name_of_call(Keeping keeping, Call call) {
  if (keeping == Keeping::name_of_element_count)
    return std::to_string(call.batch * call.key_heads * call.key_length * call.key_dim);
  if (keeping == Keeping::name_without_strides) {
    call.layout = Layout::bhld;
    call.tensors = {};
  }
  if (keeping == Keeping::name_without_type) {
    call.dtype = DType::f32;
    call.tensor(TensorId::mask).dtype.reset();
  }
  if (keeping == Keeping::name_without_mask) call.mask.reset();
  return print_call(call);
}

/// What must be the same under one name for the answer to be right.
std::string what_matters(Keeping keeping, const Call& call) {
  if (keeping == Keeping::name_of_element_count)
    return std::to_string(call.key_length) + "x" + std::to_string(call.key_dim);
  return print_call(call);
}

class KeepingPlan : public PlanAround {
 public:
  KeepingPlan(Keeping keeping, const Call& call, std::unique_ptr<Plan> plan, bool mistaken, Common& common)
      : PlanAround(std::move(plan)), call_(call), keeping_(keeping), mistaken_(mistaken), common_(common) {}
  ~KeepingPlan() override { ++common_.destroyed; }

  void upload(const Inputs& inputs) override {
    Inputs now = inputs;
    take_lengths(call_, inputs);
    runs_here_ = 0;
    if (keeping_ == Keeping::sample_of_values) {
      const auto* bytes = static_cast<const std::byte*>(inputs.v().data);
      const std::size_t size = span_bytes(inputs.v());
      const bool known = packed_.size() == size && size > 0 && at_ == inputs.v().data &&
                         std::memcmp(packed_.data(), bytes, size_of(inputs.v().dtype)) == 0;
      if (!known) packed_.assign(bytes, bytes + size);
      at_ = inputs.v().data;
      now.change(TensorId::v).data = packed_.data();
    }
    far_ = is_far(inputs.q()) || is_far(inputs.k()) || is_far(inputs.v()) || (inputs.mask() && is_far(*inputs.mask()));
    shared_ = inputs.k().data == inputs.v().data && inputs.k().shape[2] > 0;
    inner_->upload(now);
  }

  void run() override {
    inner_->run();
    ++runs_here_;
    my_run_ = ++common_.runs;
    destroyed_before_ = common_.destroyed;
  }

  void download(const Outputs& outputs) override {
    inner_->download(outputs);
    const MutableTensor& o = outputs.out();
    if (keeping_ == Keeping::whole_vectors) write_whole_vectors(o);
    if (!is_wrong() && !(keeping_ == Keeping::index_of_32_bits && is_far(o))) return;
    each_row(call_, [&](std::int64_t b, std::int64_t h, std::int64_t l) {
      each_in_row(o, b, h, l, [](double x, std::int64_t) { return 2 * x + 1; });
    });
  }

 private:
  template <class View>
  static bool is_far(const View& view) {
    std::int64_t last = 0;
    for (std::size_t axis = 0; axis < 4; ++axis) {
      if (view.shape[axis] == 0) return false;
      last += (view.shape[axis] - 1) * view.strides[axis];
    }
    return last >= std::int64_t{1} << 32;
  }

  static void write_whole_vectors(const MutableTensor& o) {
    const Index4 n = o.shape;
    if (o.strides[3] != 1 || o.strides[2] != n[3] || n[1] < 2) return;
    const std::int64_t used = n[2] * n[3];
    for (std::int64_t b = 0; b < n[0]; ++b) {
      for (std::int64_t at = used; at % 8 != 0 && at < o.strides[1]; ++at)
        store(o.data, o.dtype, b * o.strides[0] + at, 0);
    }
  }

  bool is_wrong() const {
    switch (keeping_) {
      case Keeping::ring_of_results: return common_.runs - my_run_ >= 4;
      case Keeping::pool_of_buffers: return common_.destroyed > destroyed_before_;
      case Keeping::third_run: return runs_here_ >= 3;
      case Keeping::pack_by_address: return shared_;
      case Keeping::index_of_32_bits: return far_;
      default: return mistaken_;
    }
  }

  Call call_;  ///< with the lengths of the last upload
  const Keeping keeping_;
  const bool mistaken_;
  Common& common_;
  std::vector<std::byte> packed_;
  const void* at_ = nullptr;
  bool far_ = false, shared_ = false;
  int runs_here_ = 0, my_run_ = 0, destroyed_before_ = 0;
};

class KeepingBackend : public BackendAround {
 public:
  KeepingBackend(Keeping keeping, const Context& /*context*/)
      : BackendAround({std::string(kNames[static_cast<std::size_t>(keeping)].name), "deliberately wrong", "CPU"},
                      make_example()),
        keeping_(keeping) {}
  std::unique_ptr<Plan> prepare(const Call& call) override {
    const std::string matters = what_matters(keeping_, call);
    const bool by_name = keeping_ >= Keeping::name_without_strides && keeping_ <= Keeping::name_of_element_count;
    const bool mistaken =
        by_name && common_.first.try_emplace(name_of_call(keeping_, call), matters).first->second != matters;
    return std::make_unique<KeepingPlan>(keeping_, call, inner_->prepare(call), mistaken, common_);
  }

 private:
  const Keeping keeping_;
  Common common_;
};

}  // namespace

std::span<const BackendEntry> keeping_backends() {
  static const auto entries = entries_of<KeepingBackend, Keeping>(kNames);
  return entries;
}

}  // namespace attest::faulty
