// clblast: the textbook way on an OpenCL device. Q * K^T and P * V are CLBlast's batched products, with a masked
// softmax between them. Holds the score matrix: a baseline, not a fused kernel.
#include <clblast.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "backends/clblast/gemm_kernel.h"
#include "backends/clblast/gradients.h"
#include "backends/clblast/products.h"
#include "backends/support/opencl/call.h"
#include "gradients_cl.h"
#include "kernels_cl.h"

namespace attest {
namespace {

using support::checked;
using support::OpenClDevice;

template <class Real>
class ClblastPlan : public Plan {
 public:
  /// `program` holds gradients.cl where the call wants gradients.
  ClblastPlan(const Call& call, OpenClDevice& device, const cl::Program& program, const GemmKernel& kernel)
      : device_(device),
        call_(call, device, program),
        sizes_(call),
        buffers_(device, sizes_, sizeof(Real)),
        products_(device, kernel, sizes_.heads),
        pack_queries_(program, "pack_queries"),
        pack_keys_(program, "pack_keys"),
        softmax_(program, "masked_softmax"),
        add_flagged_(program, "add_flagged") {
    if (call.wants_gradients()) gradients_.emplace(call_, device, program, sizes_, buffers_, products_);
  }

  void upload(const Inputs& inputs) override {
    call_.upload(inputs);
    checked([&] {
      const auto set = [&](cl::Kernel& kernel, const std::vector<const cl::Buffer*>& buffers) {
        cl_uint n = call_.set_common(kernel);
        for (const cl::Buffer* buffer : buffers) kernel.setArg(n++, *buffer);
        return n;
      };
      const ProductBuffers& on = buffers_;
      set(pack_queries_, {&on.queries});
      pack_keys_.setArg(set(pack_keys_, {&on.keys, &on.values, &on.key_flags, &on.any_flags}), cl_int{0});
      set(softmax_, {&on.scores});
      set(add_flagged_, {&on.scores, &on.key_flags, &on.any_flags});
      if (gradients_) gradients_->upload(inputs);
    });
  }

  void run() override {
    checked([&] {
      if (call_.problem().runs_forward()) enqueue_forward();
      if (gradients_) gradients_->enqueue();
      device_.queue().finish();
    });
  }

  void download(const Outputs& outputs) override {
    call_.download(outputs);
    checked([&] {
      if (gradients_) gradients_->download(outputs);
    });
  }

  std::size_t workspace_bytes() const override {
    double numbers = 0;
    for (const auto& [what, count] : sizes_.buffers()) numbers += count;
    return static_cast<std::size_t>(numbers) * sizeof(Real);
  }

  /// From the start of the first command to the end of the last.
  std::optional<std::chrono::nanoseconds> device_time() const override {
    if (gradients_ || last_() == nullptr) return std::nullopt;
    return checked([&] {
      return std::chrono::nanoseconds(static_cast<std::int64_t>(last_.getProfilingInfo<CL_PROFILING_COMMAND_END>() -
                                                                first_.getProfilingInfo<CL_PROFILING_COMMAND_START>()));
    });
  }

 private:
  void enqueue_forward() {
    const ProductSizes& n = sizes_;
    const Matrices queries{buffers_.queries(), n.row_pitch, n.key_dim_pitch};
    const Matrices keys{buffers_.keys(), n.key_dim_pitch, n.key_pitch};
    const Matrices values{buffers_.values(), n.key_pitch, n.value_dim_pitch};
    const Matrices scores{buffers_.scores(), n.row_pitch, n.key_pitch};
    const Matrices out{call_.out()(), n.rows, n.value_dim};
    const std::size_t rows = as_size(n.heads * n.rows);
    const bool products = rows > 0 && n.keys > 0;
    cl::CommandQueue& queue = device_.queue();
    queue.enqueueFillBuffer(buffers_.any_flags, cl_int{0}, 0, sizeof(cl_int), nullptr, &first_);
    if (products) {
      products_.begin();
      device_.enqueue_rows(pack_queries_, rows);
      device_.enqueue_rows(pack_keys_, as_size(n.heads * n.key_pitch / kGemmDepth));
      products_.multiply(n.rows, n.key_pitch, n.key_dim_pitch, static_cast<Real>(call_.problem().scale_value()),
                         queries, keys, scores, "q * k");
    } else {
      queue.enqueueFillBuffer(call_.out(), Real{0}, 0,
                              std::max<std::size_t>(rows * as_size(n.value_dim), 1) * sizeof(Real));
    }
    device_.enqueue_rows(softmax_, rows, &last_);
    if (products) {
      products_.multiply(n.rows, n.value_dim, n.key_pitch, Real{1}, scores, values, out, "p * v");
      device_.enqueue_rows(add_flagged_, rows, &last_);
    }
    call_.enqueue_rest();
  }

  OpenClDevice& device_;
  support::DeviceCall call_;
  const ProductSizes sizes_;
  const ProductBuffers buffers_;
  Products<Real> products_;
  std::optional<ClblastGradients<Real>> gradients_;
  cl::Kernel pack_queries_, pack_keys_, softmax_, add_flagged_;
  cl::Event first_, last_;
};

class ClblastBackend : public Backend {
 public:
  explicit ClblastBackend(const Context& context) : device_(context.device) {}
  ~ClblastBackend() override { clblast::ClearCache(); }

  Identity identity() const override {
    return {"clblast", "CLBlast " ATTEST_CLBLAST_VERSION ", " + device_.library(), device_.name()};
  }
  int contract() const override { return 5; }

  std::optional<Refusal> refuse(const Call& p) const override {
    if (auto refusal = refuse_other_operators(p)) return refusal;
    if (auto refusal = support::refuse_on_device(p, device_)) return refusal;
    // Every head of keys is filled up to whole steps of a product: millions of short ones need more than their tensors.
    for (const auto& [what, numbers] : ProductSizes(p).buffers()) {
      const double bytes = numbers * static_cast<double>(size_of(accumulator_of(p.dtype)));
      if (auto refusal = support::refuse_allocation(what, bytes, device_)) return refusal;
    }
    return std::nullopt;
  }

  Tuning tuning() const override { return {1, kernel_.parameters()}; }
  void tune(const std::vector<std::int64_t>& values) override { kernel_.set(values); }

  Conventions conventions() const override {
    Conventions stated;
    // Which kernel CLBlast takes depends on the sizes of a product.
    stated.same_bits = "repeat, threads, pages";
    return stated;
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
    std::string options = support::type_options(p, device_) + " -DGEMM_DEPTH=" + std::to_string(kGemmDepth);
    if (p.wants_gradients()) options += " -DWITH_GRADIENTS";
    auto found = programs_.find(options);
    if (found == programs_.end()) {
      const std::string source = p.wants_gradients() ? support::gradients_source() + kClblastSource + kGradientsSource
                                                     : support::problem_source() + kClblastSource;
      found = programs_.emplace(options, device_.build(source, options)).first;
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
