// opencl: our own fused kernels in OpenCL C 1.2. A CPU and a GPU want different structures; the device's type chooses,
// and $ATTEST_OPENCL_KERNEL=cpu|gpu overrides, so that both can be tested on one device.
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <variant>

#include "attention_cpu_cl.h"
#include "attention_gpu_cl.h"
#include "backends/backend.h"
#include "backends/opencl/gradients.h"
#include "backends/opencl/linear.h"
#include "backends/support/opencl/call.h"
#include "backends/support/tuned_tile.h"
#include "gradients_cl.h"
#include "linear_cl.h"

namespace attest {
namespace {

using support::checked;
using support::OpenClDevice;

/// What may be tuned of the kernel for CPUs.
struct CpuChoice {
  support::TunedTile tile;
  std::int64_t vector_bytes;

  explicit CpuChoice(const OpenClDevice& device)
      // Each step over a tile of keys costs every row a rescaling. PoCL's local memory is a core's second-level cache.
      : tile({384, device.local_bytes() >= (std::size_t{1} << 20) ? 512 : 256, 24}),
        vector_bytes(standard_bytes(device)) {}

  static std::int64_t standard_bytes(const OpenClDevice& device) {
    const int floats = device.native_floats();
    return floats >= 16 ? 64 : floats >= 8 ? 32 : 16;
  }

  Tuning tuning(const OpenClDevice& device) const {
    Tuning all{1, tile.parameters()};
    all.parameters.push_back({"vector_bytes", vector_bytes, standard_bytes(device), {16, 32, 64}});
    return all;
  }

  void set(const std::vector<std::int64_t>& values) { vector_bytes = *tile.set(values); }

  /// Lanes of a vector: 4, 8 or 16 elements of so many bytes.
  int lanes(std::size_t element) const {
    return static_cast<int>(std::max<std::int64_t>(vector_bytes / static_cast<std::int64_t>(element), 4));
  }
};

/// Tile sizes of the CPU kernel, shrunk until its scratch fits the device's local memory.
struct CpuTile {
  int rows, block, keys, lanes;

  /// The standard choice where vectors of the chosen one are too long for so large a head.
  /// nullopt where the smallest tile of so large a head doesn't fit, either.
  static std::optional<CpuTile> fitting(const Call& p, const OpenClDevice& device, const CpuChoice& choice,
                                        std::size_t element) {
    for (const CpuChoice& candidate : {choice, CpuChoice(device)}) {
      const CpuTile tile(p, device, candidate, element);
      if (tile.bytes(p, element) <= device.local_bytes()) return tile;
    }
    return std::nullopt;
  }

  CpuTile(const Call& p, const OpenClDevice& device, const CpuChoice& choice, std::size_t element)
      : block(static_cast<int>(choice.tile.shape().block)),
        keys(static_cast<int>(choice.tile.shape().keys)),
        lanes(choice.lanes(element)) {
    rows = static_cast<int>(
        support::even_tile_rows(p, device.compute_units(), choice.tile.shape().queries, choice.tile.shape().block));
    // The larger of the two is halved: few rows pack the keys again and again, few keys rescale the rows.
    const int panel = 2 * lanes;
    while (bytes(p, element) > device.local_bytes() && (rows > 6 || keys > panel)) {
      if (rows > 6 && (rows >= keys || keys <= panel))
        rows = std::max(rows / 2 / 6 * 6, 6);
      else
        keys = std::max(keys / 2 / panel * panel, panel);
      block = std::min(block, rows);
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

/// What may be tuned of the kernel for GPUs: a work-group of `side` x `side` work-items for `tile` queries and keys.
struct GpuChoice {
  std::int64_t tile = 32, side = 8;

  /// Measured on an H200: 2.3 times as fast as the smaller one, which every device can run.
  static GpuChoice standard(const OpenClDevice& device) {
    return local_bytes(64) <= device.local_bytes() && device.max_group() >= 256 ? GpuChoice{64, 16} : GpuChoice{};
  }

  Tuning tuning(const OpenClDevice& device) const {
    const GpuChoice usual = standard(device);
    Parameter tiles{"tile", tile, usual.tile, {32}}, sides{"side", side, usual.side, {8}};
    if (local_bytes(64) <= device.local_bytes()) tiles.choices.push_back(64);
    if (device.max_group() >= 256) sides.choices.push_back(16);
    return {1, {tiles, sides}};
  }

  void set(const std::vector<std::int64_t>& values) {
    tile = values[0];
    side = values[1];
  }

  /// Doubles take twice the registers and twice the memory: what was measured in floats may not run at all.
  GpuChoice of(std::size_t element) const { return element == 8 ? GpuChoice{} : *this; }

  /// A work-item has four queries and keys or more.
  std::int64_t group_side() const { return std::min(side, tile / 4); }

  std::string build_options() const {
    return " -DTILE=" + std::to_string(tile) + " -DSIDE=" + std::to_string(group_side()) +
           " -DEACH=" + std::to_string(tile / group_side());
  }

 private:
  /// Of attention_gpu.cl in floats: two squares, three numbers and a RowKeys for each row, two flags.
  static std::size_t local_bytes(std::size_t tile) { return tile * (2 * (tile + 4) + 3) * 4 + tile * 40 + 8; }
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
  /// `tile` is the one that `program` was built for, of the kernel for CPUs or of the one for GPUs; `gradients` holds
  /// gradients.cl where the call wants them.
  OpenClPlan(const Call& problem, OpenClDevice& device, const cl::Program& program,
             const std::variant<CpuTile, GpuChoice>& tile, const cl::Program* gradients)
      : device_(device),
        kernel_(program, std::holds_alternative<GpuChoice>(tile) ? "attend_gpu" : "attend_cpu"),
        gpu_(std::holds_alternative<GpuChoice>(tile)),
        element_(size_of(accumulator_of(problem.dtype))),
        call_(problem, device, program) {
    if (gpu_)
      side_ = static_cast<std::size_t>(std::get<GpuChoice>(tile).group_side());
    else
      tile_ = std::get<CpuTile>(tile);
    const std::int64_t tile_rows = gpu_ ? std::get<GpuChoice>(tile).tile : tile_->rows;
    tiles_ = static_cast<std::size_t>(problem.batch * problem.query_heads *
                                      ((problem.query_length + tile_rows - 1) / tile_rows));
    if (!gpu_ && problem.query_length == 1 && tiles_ > 0) {
      heads_ = tile_->heads_together(problem, device);
      const std::int64_t parts = (problem.heads_per_group() + heads_ - 1) / heads_;
      tiles_ = static_cast<std::size_t>(problem.batch * problem.key_heads * parts);
    }
    if (gradients) gradients_.emplace(call_, device, *gradients);
    groups_ = gpu_ ? tiles_ : std::min(tiles_, static_cast<std::size_t>(device.compute_units()));
    if (!gpu_) {
      cl_uint zero = 0;
      counter_ = checked(
          [&] { return cl::Buffer(device.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof zero, &zero); });
    }
  }

  void upload(const Inputs& inputs) override {
    call_.upload(inputs);
    checked([&] {
      set_arguments();
      if (gradients_) gradients_->upload(inputs);
    });
  }

  void run() override {
    checked([&] {
      if (groups_ > 0) {
        if (!gpu_) {
          kernel_.setArg(base_argument_, base_);
          base_ += static_cast<cl_uint>(tiles_ + groups_);  // each group asks once in vain
        }
        const cl::NDRange global = gpu_ ? cl::NDRange(groups_ * side_, side_) : cl::NDRange(groups_);
        const cl::NDRange local = gpu_ ? cl::NDRange(side_, side_) : cl::NDRange(1);
        device_.queue().enqueueNDRangeKernel(kernel_, cl::NullRange, global, local, nullptr, &event_);
      }
      call_.enqueue_rest();
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

  std::size_t workspace_bytes() const override { return tile_ ? tile_->bytes(call_.problem(), element_) : 0; }

  std::optional<std::chrono::nanoseconds> device_time() const override {
    if (gradients_ || event_() == nullptr) return std::nullopt;
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
  std::optional<OpenClGradients> gradients_;
  std::optional<CpuTile> tile_;
  std::size_t tiles_ = 0, groups_ = 0, side_ = 0;
  std::int64_t heads_ = 0;  ///< of a single query that one work-item takes; 0 where there are more queries
  cl::Buffer counter_;      ///< of tiles handed out so far
  cl_uint base_ = 0, base_argument_ = 0;
  cl::Event event_;
};

class OpenClBackend : public Backend {
 public:
  explicit OpenClBackend(const Context& context)
      : device_(context.device),
        gpu_(device_.is_gpu()),
        cpu_choice_(device_),
        gpu_choice_(GpuChoice::standard(device_)) {
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
  int contract() const override { return 5; }

  std::optional<Refusal> refuse(const Call& problem) const override {
    if (auto refusal = support::refuse_on_device(problem, device_)) return refusal;
    if (!gpu_ && problem.has_scores() && problem.runs_forward() && !tile_of(problem)) {
      return Refusal{"the head dimension is too large for the device's " + std::to_string(device_.local_bytes()) +
                     " bytes of local memory"};
    }
    return std::nullopt;
  }

  Conventions conventions() const override {
    Conventions stated;
    // Groups of heads and parts of gradients depend on the batch.
    stated.same_bits = "repeat, threads, pages";
    return stated;
  }
  Arithmetic arithmetic(const Call& problem) const override {
    Arithmetic a;
    a.accumulator = a.stored_weights = accumulator_of(problem.dtype);
    a.exp_ulps = a.log_ulps = 3;  // what OpenCL 1.2 guarantees (table 7.2); our own polynomial is better
    a.tanh_ulps = 5;
    a.division = gpu_ ? Division::opencl_division : Division::opencl_reciprocal;
    a.key_block = gpu_ ? gpu_choice_.of(size_of(a.accumulator)).tile : key_block(problem);
    a.flush_to_zero = true;
    return a;
  }

  Tuning tuning() const override { return gpu_ ? gpu_choice_.tuning(device_) : cpu_choice_.tuning(device_); }

  void tune(const std::vector<std::int64_t>& values) override {
    if (gpu_)
      gpu_choice_.set(values);
    else
      cpu_choice_.set(values);
  }

  std::unique_ptr<Plan> prepare(const Call& problem) override {
    const std::size_t element = size_of(accumulator_of(problem.dtype));
    if (problem.has_state()) {
      const int lanes = gpu_ ? kGpuLanes : cpu_choice_.lanes(element);
      const cl::Program& program = built(kLinearSource, build_options(problem, device_, lanes));
      return checked([&] { return std::make_unique<OpenClLinearPlan>(problem, device_, program, lanes); });
    }
    const cl::Program* gradients = nullptr;
    if (problem.wants_gradients()) {
      gradients = &built(kGradientsSource,
                         build_options(problem, device_, kGpuLanes) + OpenClGradients::build_options(problem, device_));
      if (!problem.runs_forward())
        return checked([&] { return std::make_unique<OpenClBackwardPlan>(problem, device_, *gradients); });
    }
    if (gpu_) {
      const GpuChoice choice = gpu_choice_.of(element);
      const std::string options = build_options(problem, device_, kGpuLanes) + choice.build_options();
      const cl::Program& program = built(kGpuSource, options);
      return checked([&] { return std::make_unique<OpenClPlan>(problem, device_, program, choice, gradients); });
    }
    const std::optional<CpuTile> tile = tile_of(problem);
    if (!tile) throw BackendError(refuse(problem)->reason);
    const cl::Program& program = built(kCpuSource, build_options(problem, device_, tile->lanes));
    return checked([&] { return std::make_unique<OpenClPlan>(problem, device_, program, *tile, gradients); });
  }

 private:
  /// One of our sources behind what its kernels need, compiled once.
  const cl::Program& built(const char* source, const std::string& options) {
    const auto found = programs_.find({source, options});
    if (found != programs_.end()) return found->second;
    const std::string before = source == kGradientsSource ? support::gradients_source() : support::problem_source();
    return programs_.emplace(std::pair(source, options), device_.build(before + source, options)).first->second;
  }

  std::optional<CpuTile> tile_of(const Call& problem) const {
    return CpuTile::fitting(problem, device_, cpu_choice_, size_of(accumulator_of(problem.dtype)));
  }

  std::int64_t key_block(const Call& problem) const {
    const std::optional<CpuTile> tile = tile_of(problem);
    return tile ? tile->keys : 8;  // of a problem that is refused
  }

  static constexpr int kGpuLanes = 4;  ///< that kernels for CPUs alone use

  OpenClDevice device_;
  bool gpu_;
  CpuChoice cpu_choice_;
  GpuChoice gpu_choice_;
  std::map<std::pair<const char*, std::string>, cl::Program> programs_;
};

}  // namespace
}  // namespace attest

ATTEST_REGISTER_BACKEND(opencl, OpenClBackend)
