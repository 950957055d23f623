#include "backends/support/opencl/device.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "backends/support/opencl/cache_folder.h"

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
  const std::string trouble = provide_driver_cache();
  const std::vector<Candidate> candidates = all_devices();
  if (candidates.empty()) {
    throw BackendUnavailable(trouble.empty() ? "no OpenCL device; install a driver such as pocl-opencl-icd"
                                             : "no OpenCL device; its driver has no folder for its kernels (" +
                                                   trouble + "); let XDG_CACHE_HOME name one that can be written to");
  }
  std::string names;
  std::vector<Candidate> best;
  for (const Candidate& c : candidates) {
    names += (names.empty() ? "" : "; ") + c.name;
    if (c.name.find(wanted) == std::string::npos) continue;
    if (!best.empty() && c.is_gpu && !best.front().is_gpu) best.clear();
    if (best.empty() || c.is_gpu == best.front().is_gpu) best.push_back(c);
  }
  if (best.empty()) throw BackendUnavailable("no OpenCL device named \"" + wanted + "\"; there are: " + names);
  const char* number = std::getenv("ATTEST_OPENCL_NUMBER");
  return best[(number ? std::strtoul(number, nullptr, 10) : 0) % best.size()];
}

std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

/// Written beside its place and renamed; a cache that can't be written is no error.
void save_binary(const fs::path& path, const std::vector<unsigned char>& binary) {
  std::error_code error;
  const fs::path part = path.string() + "." + std::to_string(getpid());
  std::ofstream file(part, std::ios::binary);
  file.write(reinterpret_cast<const char*>(binary.data()), static_cast<std::streamsize>(binary.size()));
  file.close();
  if (file)
    fs::rename(part, path, error);
  else
    fs::remove(part, error);
}

std::vector<unsigned char> load_binary(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
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
    max_allocation_ = device_.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>();
    max_group_ = device_.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>();
    compute_units_ = static_cast<int>(device_.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
    native_floats_ = static_cast<int>(device_.getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>());
  });
}

cl::Program OpenClDevice::build(const std::string& source, const std::string& options) const {
  const std::string key = name_ + "\n" + library_ + "\n" + options + "\n" + source;
  std::ostringstream hexadecimal;
  hexadecimal << std::hex << fnv1a(key);
  const fs::path folder = cache_folder("attest").path;
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

void OpenClDevice::enqueue_rows(const cl::Kernel& kernel, std::size_t count, cl::Event* event) {
  if (count == 0) return;
  const std::size_t group = is_gpu_ ? 64 : 1;
  queue_.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange((count + group - 1) / group * group),
                              cl::NDRange(group), nullptr, event);
}

std::chrono::nanoseconds duration_of(const cl::Event& event) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(event.getProfilingInfo<CL_PROFILING_COMMAND_END>() -
                                                            event.getProfilingInfo<CL_PROFILING_COMMAND_START>()));
}

}  // namespace attest::support
