#include "reference/options/field_words.h"

#include <cctype>
#include <string>

namespace attest {
namespace {

// clang-format off
constexpr FieldWord kWords[] = {
    {"num_heads n_heads nheads nhead n_head head num_q_heads num_query_heads q_heads "
     "num_attention_heads mha",
     "heads=8", "query heads, as many as key heads"},
    {"gqa num_kv_heads n_kv_heads kv_heads num_key_value_heads nheads_k num_k_heads kv_num_heads "
     "enable_gqa grouped_heads",
     "heads=8/2", "query heads and key heads"},
    {"mqa multi_query",
     "heads=8/1", "one key head for all queries"},
    {"mla",
     "heads=16/1 dim=576/512", "keys and values from one latent: other dims for q and k than for v"},
    {"head_dim headdim head_size dim_head d_head dk d_k qk_head_dim head_dim_qk embed_dim hidden_size "
     "d",
     "dim=64", "features of a query and of a key"},
    {"v_head_dim head_dim_v dv d_v vdim kdim",
     "dim=64/32", "features of queries and keys, and of values"},
    {"seqlen seq_len seqlens sequence_length seq_length length len n_ctx ctx context_length max_len",
     "seq=128", "queries, and as many keys"},
    {"seqlen_q seq_len_q q_len q_seqlen len_q lq query_length tgt_len num_queries seqlen_k seqlen_kv "
     "seq_len_k seq_len_kv kv_len kv_seqlen len_k lk key_length src_len num_keys cross_attention",
     "seq=128x256", "queries and keys"},
    {"max_seqlen max_seqlen_q max_seqlen_k max_seqlen_kv max_seq_len",
     "seq=128 lengths=100", "seq is the longest, lengths those of each batch"},
    {"cu_seqlens cu_seqlens_q cu_seqlens_k cu_seqlens_kv cu_seq_lens varlen ragged packed thd nested "
     "unpad qo_indptr kv_indptr",
     "batch=2 seq=5 lengths=3,5 layout=thd", "sequences one after another; their starts follow from lengths"},
    {"seqused_k seqused_q cache_seqlens context_lens seq_lens actual_seq_len actual_seq_lengths "
     "key_lengths kv_lens kv_lengths query_lengths valid_lens nonpad_kv_seqlen key_padding_mask "
     "padding_mask padding",
     "batch=2 seq=5 lengths=3,5", "of keys, or of queries and keys (q:4,5/k:3,5)"},
    {"batch_size bsz bs nbatch",
     "batch=2", "sequences"},
    {"softmax_scale sm_scale qk_scale scaling scale_factor attn_scale score_scale temperature",
     "scale=0.125", "of the scores; 1/sqrt(Dqk) without it"},
    {"is_causal causal_mask use_causal_mask is_causal_lower_right autoregressive unidirectional",
     "causal", "with Lq != Lk align=top-left or align=bottom-right"},
    {"causal_lower_right causal_upper_left bottom_right top_left causal_alignment diagonal",
     "causal align=bottom-right", "or align=top-left"},
    {"attn_mask attention_mask key_mask bool_mask",
     "mask=bool:BHQK:random(0.5)", "true: visible; a letter becomes 1 where the axis is broadcast"},
    {"attn_bias bias attention_bias additive_mask rel_pos relative_position_bias position_bias "
     "score_mod",
     "mask=add:BHQK:normal", "added to the scaled scores"},
    {"window_size window_left window_right sliding_window local_window local_attention swa "
     "window_size_left left_window_size band",
     "causal window=127:0", "keys to the left and to the right of the diagonal"},
    {"prefix_len prefix_length prefix_lm",
     "seq=8 causal prefix=2", "keys that every query sees"},
    {"segment_ids document_ids doc_ids documents document_mask doc_mask segment_lens",
     "seq=8 segments=3,5", "documents one after the other; queries see their own"},
    {"block_mask block_sparse sparse sparse_mask sparsity blockmask",
     "seq=8 blocks=4x4:random(0.5)", "block-sparse visibility"},
    {"logits_soft_cap soft_cap logit_cap logits_cap attn_logit_softcapping attn_logit_soft_cap "
     "softcapping softclamp logit_softcap tanh_cap cap",
     "softcap=30", "scores become c * tanh(score / c)"},
    {"alibi_slopes slopes use_alibi alibi_bias",
     "causal alibi", "or alibi=0.5 with one slope per query head"},
    {"sink s_aux attention_sink attention_sinks sink_token learnable_sink learnable_sinks",
     "sinks", "or sinks=0.5 with one logit per query head"},
    {"dropout_p p_dropout attn_dropout attention_dropout dropout_rate dropout_prob",
     "dropout=0.1", "kept weights are drawn by the seed"},
    {"block_table block_tables page_table page_size block_size paged_kv paged_attention "
     "kv_page_indices kv_indices",
     "seq=8 paged=4", "rows of a page; the table is drawn by the seed"},
    {"kv_cache k_cache v_cache past_key_value past_key_values past_kv past_key past_len cache "
     "cache_len decode",
     "seq=1x8 causal past=7", "cached keys, in tensors of their own"},
    {"return_lse return_softmax_lse softmax_lse logsumexp lse",
     "out=o,lse", "results besides the output"},
    {"return_softmax return_attn_probs need_weights output_attentions attn_weights attention_weights "
     "probs",
     "out=o,weights", "results besides the output"},
    {"bshd blhd_layout bsnd blnd",
     "layout=blhd", "batch, length, heads, features"},
    {"bhsd bnsd bhnd",
     "layout=bhld", "batch, heads, length, features, as without it"},
    {"bsh bsd",
     "layout=bld", "heads and features together"},
    {"tensor_layout qkv_layout input_layout qkv_format",
     "layout=blhd", "bhld, blhd, bld, qkv, kv or thd"},
    {"qkvpacked qkv_packed packed_qkv",
     "layout=qkv", "one tensor for all three"},
    {"kvpacked kv_packed packed_kv",
     "layout=kv", "one tensor for keys and values"},
    {"type precision data_type torch_dtype storage",
     "dtype=f16", "f64, f32, f16 or bf16"},
    {"fp16 float16 half",
     "dtype=f16", "storage of q, k, v and out"},
    {"bfloat16 brain_float",
     "dtype=bf16", "storage of q, k, v and out"},
    {"fp32 float32 float single",
     "dtype=f32", "as without it"},
    {"fp64 float64 double",
     "dtype=f64", "storage of q, k, v and out"},
    {"linear_attention linear_attn retention",
     "op=linear", "with decay op=gated, with the delta rule op=delta"},
    {"deltanet delta_rule gated_deltanet gdn",
     "op=gated_delta", "or op=delta without decay"},
    {"gla mamba2 ssd lightning_attention",
     "op=gated", "linear attention with decay"},
    {"initial_state recurrent_state past_state",
     "op=linear state", "a state to start from"},
    {"nan nans poisoned",
     "poison=hidden:kv", "NaN in keys and values that no query sees"},
    {"backward bwd grad grads gradient gradients requires_grad dout dq dk_grad dv_grad backprop "
     "training",
     "pass=backward", "gradients from saved results; with pass=both from one plan that computes both"},
    {"fp8 float8 float8_e4m3fn float8_e4m3 e4m3fn fp8_e4m3 e4m3",
     "k.dtype=e4m3", "of q, k and v alone"},
    {"float8_e5m2 fp8_e5m2 e5m2",
     "k.dtype=e5m2", "of q, k and v alone"},
    {"int8 i8",
     "k.dtype=i8", "of q, k and v alone"},
    {"descale_q q_descale",
     "q.dtype=e4m3 q.scale=head", "of q in 8 bits: an element is its code times its scale"},
    {"descale_k k_descale k_scale kv_scale kv_scales key_scale fp8_per_token_head int8_per_token_head",
     "k.dtype=e4m3 k.scale=token", "of k in 8 bits; tensor, head, token or block:n has one"},
    {"descale_v v_descale v_scale value_scale",
     "v.dtype=e4m3 v.scale=token", "of v in 8 bits, likewise"},
    {"int4 i4",
     "k.dtype=i4", "of q, k and v alone, two to a byte"},
    {"fp4 float4 float4_e2m1fn e2m1",
     "k.dtype=e2m1", "of q, k and v alone, two to a byte"},
    {"mxfp8 e8m0 ue8m0 float8_e8m0fnu",
     "k.dtype=e4m3 k.scale=block:32 k_scales.dtype=e8m0", "powers of two are scales alone"},
    {"mxfp4",
     "k.dtype=e2m1 k.scale=block:32 k_scales.dtype=e8m0", "of k, and likewise of q and v"},
    {"nvfp4",
     "k.dtype=e2m1 k.scale=block:16 k_scales.dtype=e4m3", "of k, and likewise of q and v"},
    {"q8_0",
     "k.dtype=i8 k.scale=block:32 k_scales.dtype=f16", "of k, and likewise of q and v"},
    {"quantized quantization",
     "", "types are f64, f32, f16 and bf16, of q, k and v also e4m3, e5m2, i8, e2m1 and i4, with scales (k.scale)"},
    {"rotary rotary_emb rotary_cos rotary_sin apply_rotary neox is_neox rotary_neox",
     "rope=halves", "features r and r + R/2 of q and k are a pair; a rotation before the kernel is no option"},
    {"rotary_interleaved gptj",
     "rope=interleaved", "features 2r and 2r + 1 are a pair"},
    {"rotary_dim rotary_embedding_dim",
     "rope=halves:2", "the first R features are rotated"},
    {"rope_theta rope_base rotary_base",
     "rope=halves rope.base=500000", "of the angles in the tables that the kernel reads"},
    {"position_ids positions",
     "rope=halves rope.positions=64", "tensors of numbers below n"},
    {"qk_norm q_norm k_norm qk_layernorm",
     "norm=1e-06", "eps of an RMS norm of the rows of q and k"},
    {"use_qk_l2norm_in_kernel use_qk_l2norm qk_l2norm l2_norm l2_normalize",
     "op=gated_delta l2norm", "rows of q and k of linear attention, each divided by its length"},
    {"num_splits split_k splits num_warps num_stages block_m block_n tile tiles",
     "", "how a kernel cuts its work is its own affair; its parameters are shown by attest list parameters"},
    {"deterministic",
     "", "attest check --bitwise tells whether results have the same bits again"},
    {"threads num_threads nthreads backend device plugin suite",
     "", "of the run and not of a case: options of the command, as --threads 2"},
    {"tree tree_mask tree_attention speculative medusa",
     "seq=4x8 mask=bool:11QK:tree(4)", "drafted tokens behind their past; the tree is drawn by the seed"},
    {"spans mm_prefix mm_prefix_range token_type_ids bidirectional_spans",
     "mask=bool:11QK:spans(4)", "causal but for spans, which are drawn by the seed"},
    {"chunks attention_chunk attention_chunk_size chunked_attention",
     "mask=bool:11QK:chunks(4)", "causal within each chunk"},
    {"cross_layer ring ring_attention context_parallel cp_size tp_size",
     "", "a case is one call; where it runs is the backend's affair"},
};
// clang-format on

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (words.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::span<const FieldWord> field_words() { return kWords; }

const FieldWord* find_field_word(std::string_view word) {
  std::string plain;
  for (const char c : word) plain += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (plain.empty()) return nullptr;
  for (const FieldWord& row : kWords) {
    if (has_word(row.words, plain)) return &row;
  }
  return nullptr;
}

}  // namespace attest
