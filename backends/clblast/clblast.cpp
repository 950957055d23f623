// clblast: the textbook way on an OpenCL device. Q * K^T and P * V are CLBlast's batched products, with a masked
// softmax between them. Holds the score matrix: a baseline, not a fused kernel.
#include <clblast.h>

#include <map>
#include <vector>

#include "backends/backend.h"
#include "backends/support/opencl/call.h"
#include "kernels_cl.h"

namespace attest {
namespace {

using support::checked;
using support::OpenClDevice;

void check_clblast(clblast::StatusCode status, const char* what) {
  if (status == clblast::StatusCode::kSuccess) return;
  throw BackendError(std::string("CLBlast ") + what + " gave status " + std::to_string(static_cast<int>(status)));
}

template <class Real>
class ClblastPlan : public Plan {
 public:
  ClblastPlan(const Call& p, OpenClDevice& device, const cl::Program& program)
      : p_(p),
        device_(device),
        call_(p, device, program),
        pack_queries_(program, "pack_queries"),
        pack_keys_(program, "pack_keys"),
        softmax_(program, "masked_softmax"),
        add_flagged_(program, "add_flagged"),
        heads_(count(p.batch * p.query_heads)),
        rows_(heads_ * count(p.query_length)),
        key_rows_(count(p.batch * p.key_heads * p.key_length)) {
    q_ = reals(rows_ * count(p.key_dim));
    k_ = reals(key_rows_ * count(p.key_dim));
    v_ = reals(key_rows_ * count(p.value_dim));
    scores_ = reals(rows_ * count(p.key_length));
    flags_ = device.allocate(key_rows_ * sizeof(cl_int));
    any_ = device.allocate(sizeof(cl_int));
    const std::size_t lq = count(p.query_length), lk = count(p.key_length);
    for (std::size_t n = 0; n < heads_; ++n) {
      const std::size_t b = n / count(p.query_heads), h = n % count(p.query_heads);
      const std::size_t key_head = b * count(p.key_heads) + h / count(p.heads_per_group());
      q_at_.push_back(n * lq * count(p.key_dim));
      k_at_.push_back(key_head * lk * count(p.key_dim));
      v_at_.push_back(key_head * lk * count(p.value_dim));
      scores_at_.push_back(n * lq * lk);
      out_at_.push_back(n * lq * count(p.value_dim));
    }
    scales_.assign(heads_, static_cast<Real>(p.scale_value()));
    ones_.assign(heads_, Real{1});
    zeros_.assign(heads_, Real{0});
  }

  void upload(const Inputs& inputs) override {
    call_.upload(inputs);
    checked([&] {
      const auto set = [&](cl::Kernel& kernel, const std::vector<const cl::Buffer*>& buffers) {
        cl_uint n = call_.set_common(kernel);
        for (const cl::Buffer* buffer : buffers) kernel.setArg(n++, *buffer);
      };
      set(pack_queries_, {&q_});
      set(pack_keys_, {&k_, &v_, &flags_, &any_});
      set(softmax_, {&scores_});
      set(add_flagged_, {&scores_, &flags_, &any_});
    });
  }

  void run() override {
    checked([&] {
      cl::CommandQueue& queue = device_.queue();
      const std::size_t lq = count(p_.query_length), lk = count(p_.key_length);
      // CLBlast reads what it multiplies by beta = 0: old NaN would survive.
      queue.enqueueFillBuffer(any_, cl_int{0}, 0, sizeof(cl_int), nullptr, &first_);
      queue.enqueueFillBuffer(call_.out(), Real{0}, 0,
                              std::max<std::size_t>(rows_ * count(p_.value_dim), 1) * sizeof(Real));
      if (rows_ > 0 && lk > 0) {
        queue.enqueueFillBuffer(scores_, Real{0}, 0, rows_ * lk * sizeof(Real));
        device_.enqueue_rows(pack_queries_, rows_);
        device_.enqueue_rows(pack_keys_, key_rows_);
        multiply(clblast::Transpose::kYes, lq, lk, count(p_.key_dim), scales_, q_, q_at_, k_, k_at_, scores_,
                 scores_at_, "q * k");
      }
      device_.enqueue_rows(softmax_, rows_, &last_);
      if (rows_ > 0 && lk > 0) {
        multiply(clblast::Transpose::kNo, lq, count(p_.value_dim), lk, ones_, scores_, scores_at_, v_, v_at_,
                 call_.out(), out_at_, "p * v");
        device_.enqueue_rows(add_flagged_, rows_, &last_);
      }
      call_.enqueue_rest();
      queue.finish();
    });
  }

  void download(const Outputs& outputs) override { call_.download(outputs); }

  std::size_t workspace_bytes() const override {
    return (rows_ * count(p_.key_dim + p_.key_length) + key_rows_ * count(p_.key_dim + p_.value_dim)) * sizeof(Real);
  }

  /// From the start of the first command to the end of the last.
  std::optional<std::chrono::nanoseconds> device_time() const override {
    if (last_() == nullptr) return std::nullopt;
    return checked([&] {
      return std::chrono::nanoseconds(static_cast<std::int64_t>(last_.getProfilingInfo<CL_PROFILING_COMMAND_END>() -
                                                                first_.getProfilingInfo<CL_PROFILING_COMMAND_START>()));
    });
  }

 private:
  static std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }
  cl::Buffer reals(std::size_t n) const { return device_.allocate(n * sizeof(Real)); }

  /// C[n] = alpha * A[n] * B[n] for every head: m x k times k x n, row after row.
  void multiply(clblast::Transpose b_transpose, std::size_t m, std::size_t n, std::size_t k,
                const std::vector<Real>& alphas, const cl::Buffer& a, const std::vector<std::size_t>& a_at,
                const cl::Buffer& b, const std::vector<std::size_t>& b_at, const cl::Buffer& c,
                const std::vector<std::size_t>& c_at, const char* what) {
    cl_command_queue queue = device_.queue()();
    const std::size_t b_row = b_transpose == clblast::Transpose::kYes ? k : n;
    check_clblast(clblast::GemmBatched<Real>(clblast::Layout::kRowMajor, clblast::Transpose::kNo, b_transpose, m, n, k,
                                             alphas.data(), a(), a_at.data(), k, b(), b_at.data(), b_row, zeros_.data(),
                                             c(), c_at.data(), n, heads_, &queue),
                  what);
  }

  const Call p_;
  OpenClDevice& device_;
  support::DeviceCall call_;
  cl::Kernel pack_queries_, pack_keys_, softmax_, add_flagged_;
  std::size_t heads_, rows_, key_rows_;
  cl::Buffer q_, k_, v_, scores_, flags_, any_;
  std::vector<std::size_t> q_at_, k_at_, v_at_, scores_at_, out_at_;
  std::vector<Real> scales_, ones_, zeros_;
  cl::Event first_, last_;
};

class ClblastBackend : public Backend {
 public:
  explicit ClblastBackend(const Context& context) : device_(context.device) {}
  ~ClblastBackend() override { clblast::ClearCache(); }

  Identity identity() const override {
    return {"clblast", "CLBlast " ATTEST_CLBLAST_VERSION ", " + device_.library(), device_.name()};
  }
  int contract() const override { return 2; }

  std::optional<Refusal> refuse(const Call& p) const override {
    if (auto refusal = refuse_other_operators(p)) return refusal;
    if (auto refusal = support::refuse_on_device(p, device_)) return refusal;
    const double bytes = static_cast<double>(p.batch * p.query_heads) * static_cast<double>(p.query_length) *
                         static_cast<double>(p.key_length) * static_cast<double>(size_of(accumulator_of(p.dtype)));
    if (bytes > static_cast<double>(device_.max_allocation())) {
      return Refusal{"the score matrix needs " + std::to_string(static_cast<long>(bytes / 0x1p20)) +
                     " MiB, the device allocates at most " + std::to_string(device_.max_allocation() >> 20)};
    }
    return std::nullopt;
  }

  Arithmetic arithmetic(const Call& p) const override {
    Arithmetic a;
    a.accumulator = a.stored_weights = accumulator_of(p.dtype);
    a.exp_ulps = a.log_ulps = 3;  // OpenCL 1.2, table 7.2
    a.tanh_ulps = 5;
    a.division = Division::opencl_division;
    a.normalised_before_storage = true;
    a.flush_to_zero = true;
    return a;
  }

  std::unique_ptr<Plan> prepare(const Call& p) override {
    const std::string options = support::type_options(p, device_);
    auto found = programs_.find(options);
    if (found == programs_.end()) {
      found = programs_.emplace(options, device_.build(support::problem_source() + kClblastSource, options)).first;
    }
    return checked([&]() -> std::unique_ptr<Plan> {
      if (p.dtype == DType::f64) return std::make_unique<ClblastPlan<double>>(p, device_, found->second);
      return std::make_unique<ClblastPlan<float>>(p, device_, found->second);
    });
  }

 private:
  OpenClDevice device_;
  std::map<std::string, cl::Program> programs_;
};

}  // namespace
}  // namespace attest

ATTEST_REGISTER_BACKEND(clblast, ClblastBackend)
