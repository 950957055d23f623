#include "backends/ring/work.h"

#include "backends/ring/head_work.h"
#include "backends/ring/key_work.h"
#include "backends/ring/ring_work.h"

namespace attest::ring {
namespace {

template <class Real>
std::unique_ptr<Work> make(Scheme scheme, const Call& call, const Group& group, int threads) {
  switch (scheme) {
    case Scheme::head_parallel: return std::make_unique<HeadWork<Real>>(call, group, threads);
    case Scheme::key_parallel: return std::make_unique<KeyWork<Real>>(call, group, threads);
    case Scheme::ring:
    case Scheme::ring_zigzag: break;
  }
  return std::make_unique<RingWork<Real>>(scheme, call, group, threads);
}

}  // namespace

std::vector<Piece> pieces_of(Scheme scheme, const Call& call, int ranks) {
  std::vector<Piece> pieces;
  for (const Shard& shard : shards_of(scheme, call, ranks)) {
    if (scheme == Scheme::head_parallel)
      pieces.push_back({shard.mask_heads, shard.mask_queries, shard.mask_keys});
    else
      pieces.push_back({shard.query_heads, shard.queries, shard.mask_keys});
  }
  return pieces;
}

std::unique_ptr<Work> make_work(Scheme scheme, const Call& call, const Group& group, int threads) {
  return call.dtype == DType::f64 ? make<double>(scheme, call, group, threads)
                                  : make<float>(scheme, call, group, threads);
}

}  // namespace attest::ring
