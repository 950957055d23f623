// The distributed backends with deliberate mistakes (faults.cmake), in the place of those of the build.
#include "backends/registry.h"

namespace attest {

std::unique_ptr<Backend> make_backend_ring(const Context&);
std::unique_ptr<Backend> make_backend_ring_zigzag(const Context&);
std::unique_ptr<Backend> make_backend_head_parallel(const Context&);
std::unique_ptr<Backend> make_backend_key_parallel(const Context&);

std::span<const BackendEntry> registered_backends() {
  static const BackendEntry entries[] = {{"head_parallel", make_backend_head_parallel, ""},
                                         {"key_parallel", make_backend_key_parallel, ""},
                                         {"ring", make_backend_ring, ""},
                                         {"ring_zigzag", make_backend_ring_zigzag, ""}};
  return entries;
}

}  // namespace attest
