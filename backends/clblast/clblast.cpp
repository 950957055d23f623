// clblast: the textbook way on an OpenCL device. Q * K^T and P * V are CLBlast's batched products, with a masked
// softmax between them. Holds the score matrix: a baseline, not a fused kernel.
#include <clblast.h>

#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/clblast/gemm_kernel.h"
#include "backends/support/opencl/call.h"
#include "kernels_cl.h"

namespace attest {
namespace {

using support::checked;
using support::OpenClDevice;

/// Elements of a row that enters a product as its k dimension.
std::int64_t deep(std::int64_t n) { return (n + kGemmDepth - 1) / kGemmDepth * kGemmDepth; }

template <class Real>
class ClblastPlan : public Plan {
 public:
  ClblastPlan(const Call& p, OpenClDevice& device, const cl::Program& program, const GemmKernel& kernel)
      : p_(p),
        device_(device),
        kernel_(kernel),
        call_(p, device, program),
        pack_queries_(program, "pack_queries"),
        pack_keys_(program, "pack_keys"),
        softmax_(program, "masked_softmax"),
        add_flagged_(program, "add_flagged"),
        key_heads_(count(p.batch * p.key_heads)),
        rows_(count(p.batch * p.query_heads * p.query_length)),
        deep_dim_(count(deep(p.key_dim))),
        deep_keys_(count(deep(p.key_length))) {
    q_ = reals(rows_ * deep_dim_);
    k_ = reals(key_rows() * deep_dim_);
    v_ = reals(key_rows() * count(p.value_dim));
    scores_ = reals(rows_ * deep_keys_);
    flags_ = device.allocate(key_rows() * sizeof(cl_int));
    any_ = device.allocate(sizeof(cl_int));
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
      queue.enqueueFillBuffer(any_, cl_int{0}, 0, sizeof(cl_int), nullptr, &first_);
      const bool products = rows_ > 0 && p_.key_length > 0;
      if (products) {
        use_gemm_kernel(queue.getInfo<CL_QUEUE_DEVICE>()(), kPrecision, kernel_);
        device_.enqueue_rows(pack_queries_, rows_);
        device_.enqueue_rows(pack_keys_, key_rows() / kGemmDepth);
        multiply(deep_keys_, deep_dim_, static_cast<Real>(p_.scale_value()), q_, k_, scores_, "q * k");
      } else {
        queue.enqueueFillBuffer(call_.out(), Real{0}, 0,
                                std::max<std::size_t>(rows_ * count(p_.value_dim), 1) * sizeof(Real));
      }
      device_.enqueue_rows(softmax_, rows_, &last_);
      if (products) {
        multiply(count(p_.value_dim), deep_keys_, Real{1}, scores_, v_, call_.out(), "p * v");
        device_.enqueue_rows(add_flagged_, rows_, &last_);
      }
      call_.enqueue_rest();
      queue.finish();
    });
  }

  void download(const Outputs& outputs) override { call_.download(outputs); }

  std::size_t workspace_bytes() const override {
    return (rows_ * (deep_dim_ + deep_keys_) + key_rows() * (deep_dim_ + count(p_.value_dim))) * sizeof(Real);
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

  /// Keys of all heads, filled up with zeros.
  std::size_t key_rows() const { return key_heads_ * deep_keys_; }

  /// C = alpha * A * B for every head of keys: m x k times k x n, row after row and dense. The query heads that share
  /// keys lie one behind the other, and are rows of one product.
  void multiply(std::size_t n, std::size_t k, Real alpha, const cl::Buffer& a, const cl::Buffer& b, const cl::Buffer& c,
                const char* what) {
    cl_command_queue queue = device_.queue()();
    const std::size_t m = rows_ / key_heads_;
    const auto as_it_lies = clblast::Transpose::kNo;
    check_clblast(
        clblast::GemmStridedBatched<Real>(clblast::Layout::kRowMajor, as_it_lies, as_it_lies, m, n, k, alpha, a(), 0, k,
                                          m * k, b(), 0, n, n * k, Real{0}, c(), 0, n, m * n, key_heads_, &queue),
        what);
  }

  static constexpr clblast::Precision kPrecision =
      std::is_same_v<Real, double> ? clblast::Precision::kDouble : clblast::Precision::kSingle;

  const Call p_;
  OpenClDevice& device_;
  const GemmKernel kernel_;
  support::DeviceCall call_;
  cl::Kernel pack_queries_, pack_keys_, softmax_, add_flagged_;
  std::size_t key_heads_, rows_, deep_dim_, deep_keys_;
  cl::Buffer q_, k_, v_, scores_, flags_, any_;
  cl::Event first_, last_;
};

class ClblastBackend : public Backend {
 public:
  explicit ClblastBackend(const Context& context) : device_(context.device) {}
  ~ClblastBackend() override { clblast::ClearCache(); }

  Identity identity() const override {
    return {"clblast", "CLBlast " ATTEST_CLBLAST_VERSION ", " + device_.library(), device_.name()};
  }
  int contract() const override { return 3; }

  std::optional<Refusal> refuse(const Call& p) const override {
    if (auto refusal = refuse_other_operators(p)) return refusal;
    if (auto refusal = support::refuse_on_device(p, device_)) return refusal;
    // Every head of keys is filled up to whole steps of a product: millions of short ones need more than their tensors.
    const auto rows = static_cast<double>(p.batch * p.query_heads * p.query_length);
    const auto key_rows = static_cast<double>(p.batch * p.key_heads * deep(p.key_length));
    const auto deep_dim = static_cast<double>(deep(p.key_dim)), deep_keys = static_cast<double>(deep(p.key_length));
    const auto element = static_cast<double>(size_of(accumulator_of(p.dtype)));
    for (const auto& [what, numbers] :
         {std::pair("the score matrix", rows * deep_keys), std::pair("the buffer of queries", rows * deep_dim),
          std::pair("the buffer of keys", key_rows * deep_dim),
          std::pair("the buffer of values", key_rows * static_cast<double>(p.value_dim))}) {
      if (auto refusal = support::refuse_allocation(what, numbers * element, device_)) return refusal;
    }
    return std::nullopt;
  }

  Tuning tuning() const override { return {1, kernel_.parameters()}; }
  void tune(const std::vector<std::int64_t>& values) override { kernel_.set(values); }

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
    const std::string options = support::type_options(p, device_) + " -DGEMM_DEPTH=" + std::to_string(kGemmDepth);
    auto found = programs_.find(options);
    if (found == programs_.end()) {
      found = programs_.emplace(options, device_.build(support::problem_source() + kClblastSource, options)).first;
    }
    return checked([&]() -> std::unique_ptr<Plan> {
      if (p.dtype == DType::f64) return std::make_unique<ClblastPlan<double>>(p, device_, found->second, kernel_);
      return std::make_unique<ClblastPlan<float>>(p, device_, found->second, kernel_);
    });
  }

 private:
  OpenClDevice device_;
  GemmKernel kernel_;
  std::map<std::string, cl::Program> programs_;
};

}  // namespace
}  // namespace attest

ATTEST_REGISTER_BACKEND(clblast, ClblastBackend)
