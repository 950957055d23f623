#include "harness/base/missing.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>

namespace attest {
namespace {

/// What drivers and libraries say, in lower case, where there is no driver or no device.
constexpr const char* kMissing[] = {
    "no cuda gpus are available",           // torch
    "found no nvidia driver",               // torch
    "not compiled with cuda",               // torch, OpenCV
    "not compiled with xpu",                // torch
    "not linked with support for",          // torch: mps and others
    "no hip gpus are available",            // torch on ROCm
    "no cuda-capable device",               // the CUDA runtime
    "no rocm-capable device",               // the HIP runtime
    "cudaerrornodevice",                    // CuPy
    "cudaerrorinsufficientdriver",          // CuPy
    "cuda driver version is insufficient",  // the CUDA runtime
    "cuda_error_no_device",                 // the CUDA driver, Numba, PyCUDA
    "cuda_error_not_initialized",           // the same
    "cuda driver library cannot be found",  // Numba
    "0 active drivers",                     // Triton
    "platform_not_found",                   // PyOpenCL
    "device_not_found",                     // PyOpenCL
    "clgetplatformids failed",              // PyOpenCL
    "unable to initialize backend",         // JAX
    "no such device",                       // the system
    "cannot open shared object file",       // the loader
};

}  // namespace

bool names_what_is_missing(std::string_view message) {
  std::string text(message);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::any_of(std::begin(kMissing), std::end(kMissing),
                     [&](const char* words) { return text.find(words) != std::string::npos; });
}

}  // namespace attest
