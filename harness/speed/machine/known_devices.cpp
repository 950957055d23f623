#include "harness/speed/machine/known_devices.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "harness/speed/machine/roof.h"

namespace attest {
namespace {

void add(std::vector<std::string>& names, std::string name) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\0'; };
  while (!name.empty() && blank(name.back())) name.pop_back();
  name.erase(name.begin(), std::find_if_not(name.begin(), name.end(), blank));
  // Less would be found in any text.
  constexpr std::size_t kShortest = 4;
  if (name.size() >= kShortest && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

/// "Model: 		 NVIDIA H100 80GB HBM3"
void add_of_nvidia(std::vector<std::string>& names) {
  std::error_code error;
  for (const auto& device : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    std::ifstream file(device.path() / "information");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("Model:")) add(names, line.substr(6));
    }
  }
}

void add_of_graphics(std::vector<std::string>& names) {
  std::error_code error;
  for (const auto& card : std::filesystem::directory_iterator("/sys/class/drm", error)) {
    std::ifstream file(card.path() / "device" / "product_name");
    std::string name;
    if (std::getline(file, name)) add(names, name);
  }
}

/// By its functions alone, so that no header and no library is needed to build.
void add_of_opencl(std::vector<std::string>& names) {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return;
  using Handle = void*;
  const auto platform_ids =
      reinterpret_cast<std::int32_t (*)(std::uint32_t, Handle*, std::uint32_t*)>(dlsym(library, "clGetPlatformIDs"));
  const auto device_ids =
      reinterpret_cast<std::int32_t (*)(Handle, std::uint64_t, std::uint32_t, Handle*, std::uint32_t*)>(
          dlsym(library, "clGetDeviceIDs"));
  const auto device_info = reinterpret_cast<std::int32_t (*)(Handle, std::uint32_t, std::size_t, void*, std::size_t*)>(
      dlsym(library, "clGetDeviceInfo"));
  if (!platform_ids || !device_ids || !device_info) return;
  constexpr std::uint64_t kGpu = 4, kAccelerator = 8;
  constexpr std::uint32_t kName = 0x102B;
  std::array<Handle, 16> platforms{}, devices{};
  std::uint32_t platform_count = 0;
  if (platform_ids(platforms.size(), platforms.data(), &platform_count) != 0) return;
  for (std::size_t p = 0; p < std::min<std::size_t>(platform_count, platforms.size()); ++p) {
    std::uint32_t device_count = 0;
    if (device_ids(platforms[p], kGpu | kAccelerator, devices.size(), devices.data(), &device_count) != 0) continue;
    for (std::size_t d = 0; d < std::min<std::size_t>(device_count, devices.size()); ++d) {
      std::string name(256, '\0');
      std::size_t size = 0;
      if (device_info(devices[d], kName, name.size(), name.data(), &size) == 0) add(names, name.substr(0, size));
    }
  }
}

}  // namespace

const std::vector<std::string>& accelerators() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    add_of_nvidia(found);
    add_of_graphics(found);
    add_of_opencl(found);
    return found;
  }();
  return names;
}

StatedDevice stated_device(const Identity& identity, const std::vector<std::string>& names) {
  if (roof_is_of(identity, DType::f32)) return StatedDevice::host;
  const bool known = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return identity.device.find(name) != std::string::npos;
  });
  return known ? StatedDevice::accelerator : StatedDevice::unknown;
}

}  // namespace attest
