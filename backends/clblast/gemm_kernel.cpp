#include "backends/clblast/gemm_kernel.h"

#include <algorithm>
#include <map>
#include <utility>

#include "backends/support/opencl/device.h"

namespace attest {
namespace {

using Values = std::unordered_map<std::string, std::size_t>;

/// What CLBlast has for a device and type, and what is in use in its place.
struct InUse {
  Values xgemm, routine;
  std::size_t lanes = 1;
  GemmKernel kernel;
};

InUse read_standard(cl_device_id device, clblast::Precision precision) {
  InUse standard;
  check_clblast(clblast::RetrieveParameters(device, "Xgemm", precision, standard.xgemm), "parameters of Xgemm");
  check_clblast(clblast::RetrieveParameters(device, "GemmRoutine", precision, standard.routine),
                "parameters of GemmRoutine");
  const cl::Device its(device, true);
  standard.lanes = precision == clblast::Precision::kDouble ? its.getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE>()
                                                            : its.getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>();
  standard.lanes = std::clamp<std::size_t>(standard.lanes, 1, kGemmDepth);
  return standard;
}

}  // namespace

void check_clblast(clblast::StatusCode status, const std::string& what) {
  if (status == clblast::StatusCode::kSuccess) return;
  throw BackendError("CLBlast: " + what + " gave status " + std::to_string(static_cast<int>(status)));
}

std::vector<Parameter> GemmKernel::parameters() const {
  const GemmKernel standard;
  return {{"gemm_tile", tile, standard.tile, {0, 16}}, {"gemm_rows", rows, standard.rows, {4, 8}}};
}

void GemmKernel::set(const std::vector<std::int64_t>& values) {
  tile = values.at(0);
  rows = values.at(1);
}

Values GemmKernel::xgemm_parameters(std::size_t lanes) const {
  // CLBlast pads rows of this kernel's product by its tile's columns and the other way round, so both are the same.
  const auto side = static_cast<std::size_t>(tile), vector = std::min(lanes, side);
  const std::size_t across = std::max<std::size_t>(side / (2 * vector), 1);
  const std::size_t down = side / static_cast<std::size_t>(rows);
  return {{"GEMMK", 1},      {"MWG", side},   {"NWG", side}, {"KWG", 1},      {"MDIMC", across}, {"NDIMC", down},
          {"MDIMA", across}, {"NDIMB", down}, {"KWI", 1},    {"VWM", vector}, {"VWN", 1},        {"STRM", 0},
          {"STRN", 0},       {"SA", 0},       {"SB", 0},     {"KREG", 1}};
}

void use_gemm_kernel(cl_device_id device, clblast::Precision precision, const GemmKernel& kernel) {
  static std::map<std::pair<cl_device_id, clblast::Precision>, InUse> in_use;
  const auto key = std::make_pair(device, precision);
  auto found = in_use.find(key);
  if (found == in_use.end()) {
    if (kernel.tile == 0) return;
    found = in_use.emplace(key, read_standard(device, precision)).first;
  }
  InUse& now = found->second;
  if (now.kernel == kernel) return;
  Values routine = now.routine;
  if (kernel.tile != 0) routine["XGEMM_MIN_INDIRECT_SIZE"] = 0;  // no product is too small for the tiled kernel
  check_clblast(clblast::OverrideParameters(device, "Xgemm", precision,
                                            kernel.tile == 0 ? now.xgemm : kernel.xgemm_parameters(now.lanes)),
                "new parameters of Xgemm");
  check_clblast(clblast::OverrideParameters(device, "GemmRoutine", precision, routine),
                "new parameters of GemmRoutine");
  now.kernel = kernel;
}

}  // namespace attest
