#include "reference/options/launch_faults.h"

#include <string>

namespace attest {
namespace {

std::optional<Fault> find_append_fault(const Call& p) {
  if (p.wants_gradients()) return Fault{"append", "gradients of appended keys are not defined; leave it out"};
  if (p.past > 0) return Fault{"past", "append counts the new keys in the lengths of the cache; leave past out"};
  if (p.layout == Layout::qkv) return Fault{"layout", "one packed qkv tensor is no cache to append to"};
  if (p.packed_sequences() && !p.page_size)
    return Fault{"append", "packed sequences have no room for new keys but in pages; add paged=n"};
  if (p.wants(Output::present)) return Fault{"out", "append gives the cache itself back; leave present out"};
  for (std::int64_t b = 0; b < p.batch; ++b) {
    if (p.first_new_key(b) >= 0) continue;
    return Fault{"append", "each query brings a key, and sequence " + std::to_string(b) + " has " +
                               std::to_string(p.query_count(b)) + " queries and " + std::to_string(p.key_count(b)) +
                               " keys"};
  }
  return std::nullopt;
}

/// Of values that lie in the keys.
std::optional<Fault> find_latent_fault(const Call& p) {
  if (p.wants_gradients())
    return Fault{"latent", "gradients of values that lie in the keys are not defined; leave it out"};
  if (p.append) return Fault{"append", "latent keys are appended before the call; leave append out"};
  if (p.value_dim > p.key_dim) return Fault{"latent", "values are a part of the keys: Dv may not be larger than Dqk"};
  if (p.layout == Layout::qkv || p.layout == Layout::kv)
    return Fault{"layout", "latent keys are not packed with values; say bhld, blhd, bld or thd"};
  if (!p.latent_apart) return std::nullopt;
  if (p.value_dim == p.key_dim) return Fault{"latent.parts", "no column of the keys lies behind the values; raise Dqk"};
  if (p.past > 0) return Fault{"past", "cached keys have no parts; leave past out and say lengths, or paged=n"};
  if (p.wants(Output::present)) return Fault{"out", "keys in two tensors are not handed back; leave present out"};
  if (p.prepares_operands())
    return Fault{p.norm ? "norm" : "rope",
                 "keys in two tensors are rotated and normalised before the call; leave it out"};
  return std::nullopt;
}

}  // namespace

std::optional<Fault> find_launch_fault(const Call& p) {
  if (p.dynamic && p.wants_gradients())
    return Fault{"dynamic", "gradients have no lengths that change between runs; leave it out"};
  if (p.dynamic && p.past > 0)
    return Fault{"past", "dynamic lengths place the diagonal; leave past out and say align=bottom-right"};
  if (p.select && p.wants_gradients())
    return Fault{"select", "gradients of selected keys are not defined; leave it out"};
  if (p.latent_apart && !p.latent) return Fault{"latent.parts", "keys without values have no parts; add latent"};
  if (p.latent) {
    if (auto fault = find_latent_fault(p)) return fault;
  }
  return p.append ? find_append_fault(p) : std::nullopt;
}

}  // namespace attest
