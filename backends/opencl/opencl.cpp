// opencl: our own fused kernels in OpenCL C 1.2. A CPU and a GPU want different structures; the device's type chooses,
// and $ATTEST_OPENCL_KERNEL=cpu|gpu overrides, so that both can be tested on one device.
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>

#include "attention_cpu_cl.h"
#include "attention_gpu_cl.h"
#include "backends/backend.h"
#include "backends/opencl/linear.h"
#include "backends/support/opencl/call.h"
#include "backends/support/tiles.h"
#include "linear_cl.h"

namespace attest {
namespace {

using support::checked;
using support::OpenClDevice;

/// Lanes of a CPU's vectors: 4, 8 or 16 elements of so many bytes.
int lanes_of(const OpenClDevice& device, std::size_t element) {
  const int lanes = std::max(device.native_floats(), 4) * 4 / static_cast<int>(element);
  return lanes >= 16 ? 16 : lanes >= 8 ? 8 : 4;
}

/// Tile sizes of the CPU kernel, shrunk until its scratch fits the device's local memory.
struct CpuTile {
  int rows, block, keys, lanes;

  CpuTile(const Call& p, const OpenClDevice& device, std::size_t element) : block(24) {
    // Each step over a tile of keys costs every row a rescaling. PoCL's local memory is a core's second-level cache.
    keys = device.local_bytes() >= (std::size_t{1} << 20) ? 512 : 256;
    rows = static_cast<int>(support::even_tile_rows(p, device.compute_units(), 384, block));
    lanes = lanes_of(device, element);
    // The larger of the two is halved: few rows pack the keys again and again, few keys rescale the rows.
    const int panel = 2 * lanes;
    while (bytes(p, element) > device.local_bytes() && (rows > 6 || keys > panel)) {
      if (rows > 6 && (rows >= keys || keys <= panel))
        rows = std::max(rows / 2 / 6 * 6, 6);
      else
        keys = std::max(keys / 2 / panel * panel, panel);
      block = std::min(block, rows);
    }
    if (bytes(p, element) > device.local_bytes()) {
      throw BackendError("head dimension too large for the device's " + std::to_string(device.local_bytes()) +
                         " bytes of local memory");
    }
  }

  /// Of a group that share a reading of their keys: all, unless compute units would be left without work.
  std::int64_t heads_together(const Call& p, const OpenClDevice& device) const {
    const auto divide = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    const std::int64_t wanted = divide(2 * std::int64_t{device.compute_units()}, p.batch * p.key_heads);
    const std::int64_t parts = std::min(wanted, p.heads_per_group());
    return std::min<std::int64_t>(divide(p.heads_per_group(), parts), std::min(block, keys));
  }

  std::int64_t padded_columns(const Call& p) const {
    const std::int64_t panel = 2 * lanes;
    return (p.value_dim + panel - 1) / panel * panel;
  }

  std::array<std::size_t, 7> parts(const Call& p, std::size_t element) const {
    const auto size = [&](std::int64_t elements) { return static_cast<std::size_t>(elements) * element; };
    return {size(rows * p.key_dim),
            size(keys * p.key_dim),
            size(keys * padded_columns(p)),
            size(block * keys),
            size(rows * padded_columns(p)),
            size(2 * rows),
            static_cast<std::size_t>(keys) * sizeof(cl_int)};
  }

  std::size_t bytes(const Call& p, std::size_t element) const {
    std::size_t sum = 0;
    for (std::size_t part : parts(p, element)) sum += part;
    return sum + 1024;
  }
};

std::string build_options(const Call& p, const OpenClDevice& device, int lanes) {
  const bool is_double = p.dtype == DType::f64;
  const std::string real = is_double ? "double" : "float", integer = is_double ? "long" : "int";
  const std::string n = std::to_string(lanes);
  return support::type_options(p, device) + " -DVW=" + n + " -DREALV=" + real + n + " -DINTV=" + integer + n +
         " -DAS_INTV=as_" + integer + n + " -DAS_REALV=as_" + real + n;
}

class OpenClPlan : public Plan {
 public:
  OpenClPlan(const Call& problem, OpenClDevice& device, const cl::Program& program, bool gpu)
      : device_(device),
        kernel_(program, gpu ? "attend_gpu" : "attend_cpu"),
        gpu_(gpu),
        element_(size_of(accumulator_of(problem.dtype))),
        call_(problem, device, program) {
    if (!gpu_) tile_.emplace(problem, device, element_);
    const std::int64_t tile_rows = gpu_ ? 32 : tile_->rows;
    tiles_ = static_cast<std::size_t>(problem.batch * problem.query_heads *
                                      ((problem.query_length + tile_rows - 1) / tile_rows));
    if (!gpu_ && problem.query_length == 1 && tiles_ > 0) {
      heads_ = tile_->heads_together(problem, device);
      const std::int64_t parts = (problem.heads_per_group() + heads_ - 1) / heads_;
      tiles_ = static_cast<std::size_t>(problem.batch * problem.key_heads * parts);
    }
    groups_ = gpu_ ? tiles_ : std::min(tiles_, static_cast<std::size_t>(device.compute_units()));
    if (!gpu_) {
      cl_uint zero = 0;
      counter_ = checked(
          [&] { return cl::Buffer(device.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof zero, &zero); });
    }
  }

  void upload(const Inputs& inputs) override {
    call_.upload(inputs);
    checked([&] { set_arguments(); });
  }

  void run() override {
    checked([&] {
      if (groups_ > 0) {
        if (!gpu_) {
          kernel_.setArg(base_argument_, base_);
          base_ += static_cast<cl_uint>(tiles_ + groups_);  // each group asks once in vain
        }
        const cl::NDRange global = gpu_ ? cl::NDRange(groups_ * 8, 8) : cl::NDRange(groups_);
        const cl::NDRange local = gpu_ ? cl::NDRange(8, 8) : cl::NDRange(1);
        device_.queue().enqueueNDRangeKernel(kernel_, cl::NullRange, global, local, nullptr, &event_);
      }
      call_.enqueue_rest();
      device_.queue().finish();
    });
  }

  void download(const Outputs& outputs) override { call_.download(outputs); }

  std::size_t workspace_bytes() const override { return tile_ ? tile_->bytes(call_.problem(), element_) : 0; }

  std::optional<std::chrono::nanoseconds> device_time() const override {
    if (event_() == nullptr) return std::nullopt;
    return checked([&] { return support::duration_of(event_); });
  }

 private:
  void set_arguments() {
    cl_uint argument = call_.set_common(kernel_);
    if (gpu_) return;
    kernel_.setArg(argument++, static_cast<cl_int>(tile_->rows));
    kernel_.setArg(argument++, static_cast<cl_int>(tile_->block));
    kernel_.setArg(argument++, static_cast<cl_int>(tile_->keys));
    kernel_.setArg(argument++, counter_);
    base_argument_ = argument++;
    kernel_.setArg(argument++, static_cast<cl_uint>(tiles_));
    kernel_.setArg(argument++, static_cast<cl_int>(heads_));
    for (std::size_t bytes : tile_->parts(call_.problem(), element_)) kernel_.setArg(argument++, cl::Local(bytes));
  }

  OpenClDevice& device_;
  cl::Kernel kernel_;
  bool gpu_;
  std::size_t element_;
  support::DeviceCall call_;
  std::optional<CpuTile> tile_;
  std::size_t tiles_ = 0, groups_ = 0;
  std::int64_t heads_ = 0;  ///< of a single query that one work-item takes; 0 where there are more queries
  cl::Buffer counter_;      ///< of tiles handed out so far
  cl_uint base_ = 0, base_argument_ = 0;
  cl::Event event_;
};

class OpenClBackend : public Backend {
 public:
  explicit OpenClBackend(const Context& context) : device_(context.device), gpu_(device_.is_gpu()) {
    if (const char* kernel = std::getenv("ATTEST_OPENCL_KERNEL"); kernel && *kernel) {
      const std::string wanted = kernel;
      if (wanted != "cpu" && wanted != "gpu") {
        throw BackendUnavailable("ATTEST_OPENCL_KERNEL=" + wanted + ": cpu or gpu is wanted");
      }
      gpu_ = wanted == "gpu";
    }
  }

  Identity identity() const override {
    return {"opencl", device_.library(), device_.name() + (gpu_ ? " (GPU kernel)" : " (CPU kernel)")};
  }
  int contract() const override { return 2; }

  std::optional<Refusal> refuse(const Call& problem) const override {
    return support::refuse_on_device(problem, device_);
  }

  Arithmetic arithmetic(const Call& problem) const override {
    Arithmetic a;
    a.accumulator = a.stored_weights = accumulator_of(problem.dtype);
    a.exp_ulps = a.log_ulps = 3;  // what OpenCL 1.2 guarantees (table 7.2); our own polynomial is better
    a.tanh_ulps = 5;
    a.division = gpu_ ? Division::opencl_division : Division::opencl_reciprocal;
    a.key_block = gpu_ ? 32 : key_block(problem);
    a.flush_to_zero = true;
    return a;
  }

  std::unique_ptr<Plan> prepare(const Call& problem) override {
    if (problem.op != Op::attention) {
      const int lanes = gpu_ ? 4 : lanes_of(device_, size_of(accumulator_of(problem.dtype)));
      const cl::Program& program = built(kLinearSource, build_options(problem, device_, lanes));
      return checked([&] { return std::make_unique<OpenClLinearPlan>(problem, device_, program, lanes); });
    }
    const int lanes = gpu_ ? 4 : CpuTile(problem, device_, size_of(accumulator_of(problem.dtype))).lanes;
    const cl::Program& program = built(gpu_ ? kGpuSource : kCpuSource, build_options(problem, device_, lanes));
    return checked([&] { return std::make_unique<OpenClPlan>(problem, device_, program, gpu_); });
  }

 private:
  /// One of our sources behind what every kernel needs, compiled once.
  const cl::Program& built(const char* source, const std::string& options) {
    const auto found = programs_.find({source, options});
    if (found != programs_.end()) return found->second;
    return programs_.emplace(std::pair(source, options), device_.build(support::problem_source() + source, options))
        .first->second;
  }

  std::int64_t key_block(const Call& problem) const {
    try {
      return CpuTile(problem, device_, size_of(accumulator_of(problem.dtype))).keys;
    } catch (const BackendError&) {
      return 8;  // prepare will say that the problem does not fit
    }
  }

  OpenClDevice device_;
  bool gpu_;
  std::map<std::pair<const char*, std::string>, cl::Program> programs_;
};

}  // namespace
}  // namespace attest

ATTEST_REGISTER_BACKEND(opencl, OpenClBackend)
