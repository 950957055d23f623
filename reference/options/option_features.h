// The features of the rows of the table of options (options.cpp): how each size and value is cut into classes.
#pragma once

#include <vector>

#include "reference/options/option.h"

namespace attest {

using Classes = std::vector<std::string>;

// What a case covers in words that tell failures apart (option.h, `classes`), where it is more than a key or a name.

Classes batch_covered(const Call& p);
Classes heads_covered(const Call& p);
Classes lengths_covered(const Call& p);
Classes dims_covered(const Call& p);
Classes window_covered(const Call& p);
Classes mask_covered(const Call& p);
Classes outputs_covered(const Call& p);

// Features.

/// Of a row that says nothing of its own, by its kind: a flag, each name, ranges of an integer, "drawn" and "given" of
/// a list per head.
std::vector<Feature> features_by_kind(const Option& option);

std::vector<Feature> batch_features();
std::vector<Feature> head_features();
std::vector<Feature> length_features();  ///< of seq
std::vector<Feature> dim_features();
std::vector<Feature> scale_features();
std::vector<Feature> align_features();
std::vector<Feature> window_features();
std::vector<Feature> ragged_features();  ///< of lengths
std::vector<Feature> segment_features();
std::vector<Feature> mask_features();
std::vector<Feature> mask_type_features();
std::vector<Feature> block_features();
std::vector<Feature> softcap_features();
std::vector<Feature> unscaled_cap_features();
std::vector<Feature> scales_features();
std::vector<Feature> rope_features();
std::vector<Feature> rope_base_features();
std::vector<Feature> position_features();  ///< of rope.positions
std::vector<Feature> rotated_cache_features();
std::vector<Feature> norm_features();
std::vector<Feature> l2norm_features();
std::vector<Feature> dropout_features();
std::vector<Feature> part_features();
std::vector<Feature> past_features();
std::vector<Feature> causal_prefix_features();
std::vector<Feature> dynamic_features();
std::vector<Feature> append_features();
std::vector<Feature> latent_features();
std::vector<Feature> latent_parts_features();
std::vector<Feature> select_features();
std::vector<Feature> narrow_cache_features();
/// Of the scales of keys.
std::vector<Feature> scale_type_features();
/// Of the scales of q, k or v.
std::vector<Feature> scale_features(TensorId stored);
std::vector<Feature> gap_features();
std::vector<Feature> shared_head_features();
std::vector<Feature> slopes_per_batch_features();
std::vector<Feature> past_per_batch_features();
std::vector<Feature> pass_features();
/// That the loss depends on more than o: dlse or dpresent.
std::vector<Feature> loss_features(TensorId tensor);
std::vector<Feature> output_features();
std::vector<Feature> layout_features(TensorId tensor);
std::vector<Feature> stride_features(TensorId tensor);
std::vector<Feature> offset_features(TensorId tensor);
/// That a tensor has a type of its own.
std::vector<Feature> type_features(TensorId tensor);
/// Of a tensor that mostly lies dense: that it has strides, or an offset (`what`).
std::vector<Feature> placement_features(TensorId tensor, const std::string& what);
std::vector<Feature> fill_features();
std::vector<Feature> own_fill_features(TensorId tensor);
std::vector<Feature> state_fill_features();
std::vector<Feature> seed_features();

}  // namespace attest
