// Tensors on their way to a worker process and back: they lie in shared regions, and a message describes each by name,
// region, type, shape and strides.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/backends/isolation/messages.h"
#include "harness/backends/isolation/shared_memory.h"
#include "reference/call/tensors.h"

namespace attest {

/// Inputs as they go over: regions with their bytes, and a description that finds them again.
class SerializedInputs {
 public:
  /// Lays out regions from `offset` on; copies nothing yet.
  SerializedInputs(const Inputs& inputs, std::size_t offset);
  const RegionList& regions() const { return regions_; }
  const Json& description() const { return description_; }
  void copy_to(SharedFile& file) const;

 private:
  struct Source {
    const void* data;
    std::vector<ByteRange> used;
  };
  /// A tensor or a mask.
  std::size_t add(const std::string& name, const ConstTensor& view);

  RegionList regions_;
  std::vector<Source> sources_;
  Json description_;
};

/// The worker's end: views into its own mapping. Keeps what views point at.
struct UnpackedInputs {
  Inputs inputs;
  UnpackedInputs(const Json& description, const GuardedArea& area);
};

/// Names of the outputs that are set, with their views.
std::vector<std::pair<std::string, MutableTensor>> list_outputs(const Outputs& outputs);
Json describe_outputs(const Outputs& outputs, RegionList& regions);
Outputs unpack_outputs(const Json& description, const GuardedArea& area,
                       std::vector<std::vector<std::int64_t>>& starts);

/// Regions by name and size, to lay them out alike on both sides.
Json describe_regions(const RegionList& regions);
std::vector<Region> regions_from(const Json& json);

}  // namespace attest
