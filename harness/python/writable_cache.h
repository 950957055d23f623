// The cache of a call that appends, for a callable to write into: copies of k and v, as inputs are read only.
#pragma once

#include <cstddef>
#include <vector>

#include "reference/call/tensors.h"

namespace attest {

class WritableCache {
 public:
  /// Takes what lies in k and v. Its places stay where they are as long as no cache is larger.
  void take(const Inputs& inputs);

  const ConstTensor& keys() const { return keys_.view; }
  const ConstTensor& values() const { return values_.view; }

  /// Hands it out as cache_k and cache_v. Throws BackendError where bytes between its elements were written.
  void give(const Outputs& outputs) const;

 private:
  /// With the strides of the input and the bytes between its elements; dense where it spans more than kCompactBytes.
  struct Copy {
    std::vector<std::byte> bytes;
    ConstTensor view, original;
    bool whole = false;  ///< with the bytes between the elements

    void take(const ConstTensor& from);
    void give(const MutableTensor& to, const char* name) const;
  };
  Copy keys_, values_;
};

}  // namespace attest
