#include "reference/options/launch_faults.h"

#include <string>

#include "reference/call/tensor_table.h"

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

/// Of scales of tensors that are stored in 8 or 4 bits.
std::optional<Fault> find_scale_fault(const Call& p) {
  for (const TensorId id : {TensorId::q, TensorId::k, TensorId::v}) {
    const std::optional<ScaleSpec>& spec = p.scale_of(id);
    if (!spec) continue;
    const std::string name(name_of(id)), key = name + ".scale";
    if (p.wants_gradients()) return Fault{key, "gradients by scaled codes are not defined; leave it out"};
    if (p.prepares_operands())
      return Fault{p.norm ? "norm" : "rope",
                   "codes are rotated and normalised before they are stored; leave " + key + " or this out"};
    if (p.append) return Fault{"append", "new keys have no scales to be written with; leave " + key + " or append out"};
    if (p.wants(Output::present)) return Fault{"out", "present has codes alone; leave " + key + " or present out"};
    if (id == TensorId::v && p.latent) return Fault{key, "latent values have the scales of their keys; say k.scale"};
    const TensorId past = id == TensorId::k ? TensorId::past_k : TensorId::past_v;
    const TensorId wide = is_wide(type_of(p, id)) ? id : past;
    if (wide == id || (id != TensorId::q && has_tensor(p, past) && is_wide(type_of(p, past)))) {
      return Fault{key, std::string(name_of(wide)) + " is stored in " + std::string(name_of(type_of(p, wide))) +
                            ", and scales belong to 8 or 4 bits; say " + std::string(name_of(wide)) +
                            ".dtype=e4m3, e5m2, i8, e2m1 or i4"};
    }
    const bool by_rows = spec->share == ScaleShare::token || spec->share == ScaleShare::block;
    if (by_rows && p.packed_sequences() && !(p.page_size && id != TensorId::q))
      return Fault{key, "packed rows have no scales of their own but in pages; say tensor or head"};
  }
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
  if (auto fault = find_scale_fault(p)) return fault;
  if (p.latent) {
    if (auto fault = find_latent_fault(p)) return fault;
  }
  return p.append ? find_append_fault(p) : std::nullopt;
}

}  // namespace attest
