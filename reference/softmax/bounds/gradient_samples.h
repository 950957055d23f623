// Deviations of sampled elements of dk and dv, which are sums over all query rows of a key head.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/operators/operator.h"
#include "reference/softmax/bounds/gradient_deviation.h"
#include "reference/softmax/bounds/gradient_row.h"

namespace attest {

class GradientSamples {
 public:
  /// A few keys that lie evenly among those of `key_heads` (by batch and key head: not 0 where it is computed, empty
  /// for all), the first and the last with them; a few columns of each. Keeps references to the call and the producers.
  GradientSamples(const Call& call, const std::vector<TensorId>& results, const std::vector<Producer>& producers,
                  const std::vector<char>& key_heads);

  /// What row i of `head` gives; `gradient` is set to it.
  void add_row(const Head& head, const Row& row, std::int64_t i, const GradientRow& gradient);
  /// The head's last row was added.
  void end_head(const Head& head);
  void finish(WholeResults& to) const;

 private:
  struct Sum {
    bool claimed = true;
    GradientDeviation terms;
  };
  struct Sampled {
    TensorId result;
    std::int64_t b, key_head, j;
    std::vector<std::int64_t> columns;
    std::vector<double> key;  ///< Dqk: its row of k, known with the first query row
    std::vector<Sum> sums;    ///< by producer
  };
  bool is_of(const Sampled& sampled, const Head& head) const;

  const Call& call_;
  const std::vector<Producer>& producers_;
  std::vector<Sampled> sampled_;
};

}  // namespace attest
