#include "backends/support/opencl/device.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "problem_cl.h"

namespace attest::support {
namespace fs = std::filesystem;
namespace {

struct Candidate {
  cl::Device device;
  std::string name, library;
  bool is_gpu;
};

/// Names from drivers may end in a zero byte or blanks.
std::string clean(std::string text) {
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text;
}

std::vector<Candidate> all_devices() {
  std::vector<Candidate> found;
  std::vector<cl::Platform> platforms;
  try {
    cl::Platform::get(&platforms);
  } catch (const cl::Error&) {
    return found;  // the loader reports "no platform" as an error
  }
  for (const cl::Platform& platform : platforms) {
    std::vector<cl::Device> devices;
    try {
      platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
    } catch (const cl::Error&) {
      continue;  // a platform without devices
    }
    for (const cl::Device& device : devices) {
      const std::string vendor = clean(platform.getInfo<CL_PLATFORM_NAME>());
      found.push_back({device, vendor + ": " + clean(device.getInfo<CL_DEVICE_NAME>()),
                       vendor + " " + clean(device.getInfo<CL_DRIVER_VERSION>()),
                       (device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_GPU) != 0});
    }
  }
  return found;
}

Candidate choose(const std::string& asked) {
  const char* from_environment = std::getenv("ATTEST_OPENCL_DEVICE");
  const std::string wanted = !asked.empty() ? asked : from_environment ? from_environment : "";
  const std::vector<Candidate> candidates = all_devices();
  if (candidates.empty()) throw BackendUnavailable("no OpenCL device; install a driver such as pocl-opencl-icd");
  std::string names;
  const Candidate* best = nullptr;
  for (const Candidate& c : candidates) {
    names += (names.empty() ? "" : "; ") + c.name;
    if (c.name.find(wanted) == std::string::npos) continue;
    if (!best || (c.is_gpu && !best->is_gpu)) best = &c;
  }
  if (!best) throw BackendUnavailable("no OpenCL device named \"" + wanted + "\"; there are: " + names);
  return *best;
}

std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

fs::path cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return fs::path(cache) / "attest";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "attest";
  return {};
}

/// Written beside its place and renamed; a cache that can't be written is no error.
void save_binary(const fs::path& path, const std::vector<unsigned char>& binary) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path part = path.string() + "." + std::to_string(getpid());
  std::ofstream file(part, std::ios::binary);
  file.write(reinterpret_cast<const char*>(binary.data()), static_cast<std::streamsize>(binary.size()));
  file.close();
  if (file) fs::rename(part, path, error);
  else fs::remove(part, error);
}

std::vector<unsigned char> load_binary(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Bytes from the view's first element to its last.
std::size_t extent_bytes(const Index4& shape, const Index4& strides, std::size_t element) {
  std::int64_t last = 0;
  for (int axis = 0; axis < 4; ++axis) {
    if (shape[axis] == 0) return 0;
    last += (shape[axis] - 1) * strides[axis];
  }
  return static_cast<std::size_t>(last + 1) * element;
}

}  // namespace

std::string status_name(cl_int status) {
  switch (status) {
    case CL_DEVICE_NOT_AVAILABLE: return "CL_DEVICE_NOT_AVAILABLE";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES: return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY: return "CL_OUT_OF_HOST_MEMORY";
    case CL_BUILD_PROGRAM_FAILURE: return "CL_BUILD_PROGRAM_FAILURE";
    case CL_INVALID_VALUE: return "CL_INVALID_VALUE";
    case CL_INVALID_BINARY: return "CL_INVALID_BINARY";
    case CL_INVALID_KERNEL_ARGS: return "CL_INVALID_KERNEL_ARGS";
    case CL_INVALID_WORK_GROUP_SIZE: return "CL_INVALID_WORK_GROUP_SIZE";
    case CL_INVALID_BUFFER_SIZE: return "CL_INVALID_BUFFER_SIZE";
    default: return "status " + std::to_string(status);
  }
}

OpenClDevice::OpenClDevice(const std::string& wanted) {
  const Candidate chosen = choose(wanted);
  checked([&] {
    device_ = chosen.device;
    name_ = chosen.name;
    library_ = chosen.library;
    is_gpu_ = chosen.is_gpu;
    context_ = cl::Context(device_);
    queue_ = cl::CommandQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE);
    has_double_ = device_.getInfo<CL_DEVICE_DOUBLE_FP_CONFIG>() != 0;
    local_bytes_ = device_.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>();
    most_allocation_ = device_.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>();
    native_floats_ = static_cast<int>(device_.getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>());
  });
}

cl::Program OpenClDevice::build(const std::string& source, const std::string& options) const {
  const std::string key = name_ + "\n" + library_ + "\n" + options + "\n" + source;
  std::ostringstream hexadecimal;
  hexadecimal << std::hex << fnv1a(key);
  const fs::path folder = cache_folder();
  const fs::path path = folder / (hexadecimal.str() + ".clbin");
  const std::vector<unsigned char> binary = folder.empty() ? std::vector<unsigned char>{} : load_binary(path);
  if (!binary.empty()) {
    try {
      cl::Program program(context_, {device_}, {binary});
      program.build({device_}, options.c_str());
      return program;
    } catch (const cl::Error&) {
      // A binary of another driver build, or a damaged one: compile again and replace it.
      std::error_code error;
      fs::remove(path, error);
    }
  }
  return checked([&] {
    cl::Program program(context_, source);
    try {
      program.build({device_}, options.c_str());
    } catch (const cl::BuildError& error) {
      std::string log;
      for (const auto& [device, text] : error.getBuildLog()) log += text;
      throw BackendError("OpenCL: the kernel does not compile: " + log.substr(0, 2000));
    }
    const auto binaries = program.getInfo<CL_PROGRAM_BINARIES>();
    if (!folder.empty() && binaries.size() == 1 && !binaries[0].empty()) save_binary(path, binaries[0]);
    return program;
  });
}

cl::Buffer OpenClDevice::allocate(std::size_t bytes) const {
  return checked([&] { return cl::Buffer(context_, CL_MEM_READ_WRITE, std::max<std::size_t>(bytes, 16)); });
}

DeviceProblem device_problem(const Problem& p, const Inputs& inputs) {
  DeviceProblem d{};
  d.query_heads = p.query_heads;
  d.group = p.heads_per_group();
  d.query_length = p.query_length;
  d.key_length = p.key_length;
  d.key_dim = p.key_dim;
  d.value_dim = p.value_dim;
  d.offset = p.diagonal_offset(0);
  d.left = std::min<std::int64_t>(p.window_left, DeviceProblem::kFar);
  d.right = std::min<std::int64_t>(p.causal ? 0 : p.window_right, DeviceProblem::kFar);
  for (int axis = 0; axis < 4; ++axis) {
    d.q[axis] = inputs.q.strides[axis];
    d.k[axis] = inputs.k.strides[axis];
    d.v[axis] = inputs.v.strides[axis];
    d.mask[axis] = inputs.mask ? inputs.mask->strides[axis] : 0;
  }
  if (inputs.mask) d.mask_kind = !inputs.mask->additive ? 1 : inputs.mask->dtype == DType::f64 ? 3 : 2;
  return d;
}

std::optional<Refusal> refuse_on_device(const Problem& p, const OpenClDevice& device) {
  if (p.lengths || p.segments || p.prefix || p.blocks || p.softcap || p.alibi || p.sinks || p.dropout != 0 || p.past || p.page_size || size_of(p.dtype) == 2 || (p.mask && size_of(p.mask_dtype())==2) || p.wants_scores() || p.wants(Output::present)) return Refusal{"not yet"};
  const bool double_mask = p.mask && p.mask->additive && p.mask_dtype() == DType::f64;
  if ((p.dtype == DType::f64 || double_mask) && !device.has_double()) {
    return Refusal{"f64: the device has no double precision"};
  }
  for (TensorId id : {TensorId::q, TensorId::k, TensorId::v, TensorId::mask}) {
    if (id == TensorId::mask && !p.mask) continue;
    const DType type = id == TensorId::mask ? p.mask_dtype() : p.dtype;
    const std::size_t element = id == TensorId::mask && !p.mask->additive ? 1 : size_of(type);
    const double bytes = static_cast<double>(*storage_elements(p, id)) * static_cast<double>(element);
    if (bytes > static_cast<double>(device.most_allocation())) {
      return Refusal{std::string(kTensorNames[static_cast<std::size_t>(id)]) + " needs " +
                     std::to_string(static_cast<long>(bytes / 0x1p20)) + " MiB, the device allocates at most " +
                     std::to_string(device.most_allocation() >> 20)};
    }
  }
  return std::nullopt;
}

void DeviceInputs::upload(OpenClDevice& device, const Inputs& inputs) {
  checked([&] {
    const auto copy = [&](int slot, cl::Buffer& buffer, const void* data, std::size_t bytes) {
      if (buffer() == nullptr || bytes > capacity_[slot]) {
        buffer = device.allocate(bytes);
        capacity_[slot] = bytes;
      }
      if (bytes > 0) device.queue().enqueueWriteBuffer(buffer, CL_FALSE, 0, bytes, data);
    };
    const auto tensor = [&](int slot, cl::Buffer& buffer, const ConstTensor& t) {
      copy(slot, buffer, t.data, extent_bytes(t.shape, t.strides, size_of(t.dtype)));
    };
    tensor(0, q, inputs.q);
    tensor(1, k, inputs.k);
    tensor(2, v, inputs.v);
    if (inputs.mask) {
      const MaskTensor& m = *inputs.mask;
      copy(3, mask, m.data, extent_bytes(m.shape, m.strides, m.additive ? size_of(m.dtype) : 1));
    } else {
      copy(3, mask, nullptr, 0);
    }
    device.queue().finish();
  });
}

namespace {

template <class Real>
void scatter(const std::vector<std::byte>& from, const MutableTensor& tensor) {
  const View<Real> view = tensor.as<Real>();
  const auto* next = reinterpret_cast<const Real*>(from.data());
  for (std::int64_t b = 0; b < view.shape[0]; ++b) {
    for (std::int64_t h = 0; h < view.shape[1]; ++h) {
      for (std::int64_t l = 0; l < view.shape[2]; ++l) {
        for (std::int64_t d = 0; d < view.shape[3]; ++d) view(b, h, l, d) = *next++;
      }
    }
  }
}

}  // namespace

void download_outputs(OpenClDevice& device, const cl::Buffer& out, const cl::Buffer& lse, const Outputs& outputs) {
  checked([&] {
    const auto fetch = [&](const cl::Buffer& buffer, const MutableTensor& tensor) {
      const auto elements = static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1] * tensor.shape[2] *
                                                     tensor.shape[3]);
      if (elements == 0) return;
      std::vector<std::byte> bytes(elements * size_of(tensor.dtype));
      device.queue().enqueueReadBuffer(buffer, CL_TRUE, 0, bytes.size(), bytes.data());
      if (tensor.dtype == DType::f64) scatter<double>(bytes, tensor);
      else scatter<float>(bytes, tensor);
    };
    fetch(out, outputs.out);
    if (outputs.lse) fetch(lse, *outputs.lse);
  });
}

std::chrono::nanoseconds duration_of(const cl::Event& event) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(event.getProfilingInfo<CL_PROFILING_COMMAND_END>() -
                                                            event.getProfilingInfo<CL_PROFILING_COMMAND_START>()));
}

std::string problem_source() { return kProblemSource; }

}  // namespace attest::support
