#include "harness/cases/file_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "harness/cases/case_source.h"
#include "harness/cases/file_inputs.h"
#include "harness/cases/index_tensors.h"
#include "reference/call/tensor_place.h"
#include "reference/call/tensor_table.h"
#include "reference/options/case_line.h"
#include "reference/options/find_fault.h"

namespace attest {
namespace {

class ProblemReader : CaseSource {
 public:
  using CaseSource::CaseSource;

  FileProblem read() {
    if (find("part_o"))
      read_merge_sizes();
    else
      read_sizes();
    return {std::move(problem_), layout_, pages_};
  }

 private:
  /// Extents as B,H,L,D whatever the layout in the file: 2 axes are L,D; 3 are B,L,D (bld: heads from metadata), or
  /// T,H,D for packed sequences, whose pages of k and v are pages,P,H,D.
  Index4 extents(const std::string& key, const FileTensor& tensor) const {
    const auto& n = tensor.shape;
    Index4 shape{};
    if (layout_ == Layout::thd && page_table_ && (key == "k" || key == "v")) {
      if (n.size() != 4) fail("tensor \"" + key + "\" has shape " + tensor.shape_text() + "; pages are pages,P,H,D");
      shape = {n[0], n[2], n[1], n[3]};
    } else if (layout_ == Layout::thd) {
      if (n.size() != 3) fail("tensor \"" + key + "\" has shape " + tensor.shape_text() + "; layout thd is T,H,D");
      shape = {1, n[1], n[0], n[2]};
    } else if (n.size() == 2) {
      shape = {1, 1, n[0], n[1]};
    } else if (n.size() == 3) {
      const std::int64_t heads = heads_of(key);
      if (heads < 1 || n[2] % heads != 0) {
        fail(fmt::format("tensor \"{}\": the last axis of {} does not hold {} heads", key, tensor.shape_text(), heads));
      }
      shape = {n[0], heads, n[1], n[2] / heads};
    } else if (n.size() == 4) {
      shape = {n[0], n[1], n[2], n[3]};
      if (layout_ == Layout::blhd) std::swap(shape[1], shape[2]);
    } else {
      fail("tensor \"" + key + "\" has shape " + tensor.shape_text() + "; 2, 3 or 4 axes are wanted");
    }
    return shape;
  }

  std::int64_t heads_of(const std::string& key) const {
    const std::string name = key.starts_with("q") || metadata("kv_heads").empty() ? "heads" : "kv_heads";
    if (metadata(name).empty()) return 1;
    const double heads = metadata_number(name);
    if (!(heads >= 1 && heads <= 65536 && heads == std::floor(heads))) fail("metadata heads is no head count");
    return static_cast<std::int64_t>(heads);
  }

  /// Columns of the values that lie in latent keys.
  std::int64_t value_dim_of_latent() const {
    const double columns = metadata_number("value_dim");
    if (!(columns >= 1 && columns <= 65536 && columns == std::floor(columns)))
      fail("metadata value_dim is no number of columns");
    return static_cast<std::int64_t>(columns);
  }

  /// Columns of latent queries or keys that lie in a tensor of their own, as many rows as the other one has.
  std::int64_t rope_columns(const std::string& name, const std::string& of) const {
    const Index4 apart = extents(name, floating(name)), rows = extents(of, floating(of));
    if (apart[0] != rows[0] || apart[1] != rows[1] || apart[2] != rows[2])
      fail(fmt::format("{} {} and {} {} disagree: columns of the same rows are wanted", name,
                       floating(name).shape_text(), of, floating(of).shape_text()));
    return apart[3];
  }

  void read_sizes() {
    const std::string layout = metadata("layout");
    if (layout == "blhd")
      layout_ = Layout::blhd;
    else if (layout == "bld")
      layout_ = Layout::bld;
    else if (layout == "thd")
      layout_ = Layout::thd;
    else if (!layout.empty() && layout != "bhld")
      fail("metadata layout \"" + layout + "\"; bhld, blhd, bld or thd");

    // Without v, and with the number of its columns, values lie in the keys.
    const bool is_apart = !find("v") && find("k_rope");
    const bool is_latent = is_apart || (!find("v") && !metadata("value_dim").empty());
    const FileTensor &q = floating("q"), &k = floating("k"), &v = is_latent ? k : floating("v");
    Index4 nq = extents("q", q);
    Index4 nk = extents("k", k), nv = extents(is_latent ? "k" : "v", v);
    if (is_latent && !is_apart) nv[3] = value_dim_of_latent();
    if (is_apart) nq[3] += rope_columns("q_rope", "q");
    if (is_apart) nk[3] += rope_columns("k_rope", "k");
    if (page_table_) {
      page_size_ = nk[2];
      pages_ = nk[0];
      if (nv[0] != pages_) fail(fmt::format("the pages of k {} and v {} disagree", k.shape_text(), v.shape_text()));
      const std::int64_t sequences = layout_ == Layout::thd ? packed_sequences() : nq[0];
      if (page_table_->shape.size() != 2 || page_table_->shape[0] != sequences) {
        fail(fmt::format("page_table {}: a row of pages for each of {} sequences is wanted", page_table_->shape_text(),
                         sequences));
      }
      if (page_size_ < 1) fail("pages of no rows");
      nk[0] = nv[0] = nq[0];
      nk[2] = page_table_->shape[1] * page_size_;
      nv[2] = page_table_->shape[1] * nv[2];
    }
    const auto disagree = [&](const char* what, const char* a, const FileTensor& x, const char* b,
                              const FileTensor& y) {
      fail(fmt::format("{} of {} {} and {} {} disagree", what, a, x.shape_text(), b, y.shape_text()));
    };
    if (nq[0] != nk[0]) disagree("the batch", "q", q, "k", k);
    if (nq[0] != nv[0]) disagree("the batch", "q", q, "v", v);
    // Linear attention may have fewer heads of q and k than of v.
    const bool has_shared_heads = nk[1] != nv[1] && nq[1] == nk[1] && nk[1] > 0 && nv[1] % nk[1] == 0;
    if (nk[1] != nv[1] && !has_shared_heads) disagree("the heads", "k", k, "v", v);
    if (nk[2] != nv[2]) disagree("the length", "k", k, "v", v);
    if (nq[3] != nk[3]) disagree("the head dimension", "q", q, "k", k);
    if (nk[1] == 0 ? nq[1] != 0 : nq[1] % nk[1] != 0) disagree("the heads", "q", q, "k", k);
    if (nq[3] < 1 || nv[3] < 1) fail("a head dimension of 0");

    Problem p;
    p.call.dtype = is_wide(*q.stored_type()) ? *q.stored_type() : DType::f32;
    set_type(p, TensorId::q, q);
    set_type(p, TensorId::k, k);
    if (is_latent)
      p.call.latent = true;
    else
      set_type(p, TensorId::v, v);
    p.call.latent_apart = is_apart;
    for (const TensorId id : {TensorId::q_rope, TensorId::k_rope}) {
      if (is_apart) set_type(p, id, floating(std::string(name_of(id))));
    }
    for (const TensorRow& row : tensor_rows()) {
      const FileTensor* tensor = row.drawn ? find(std::string(row.name)) : nullptr;
      if (tensor) set_type(p, row.id, *tensor);
    }
    p.call.batch = nq[0];
    p.call.query_heads = has_shared_heads ? nv[1] : nq[1];
    p.call.key_heads = nv[1];
    if (has_shared_heads) p.call.qk_heads = nk[1];
    p.call.query_length = nq[2];
    p.call.key_length = nk[2];
    p.call.key_dim = nq[3];
    p.call.value_dim = nv[3];
    p.call.layout = layout_;
    if (page_table_) p.call.page_size = page_size_;
    if (layout_ == Layout::thd) read_starts(p);
    if (p.call.lengths && traits_of(stated_operator()).state) {
      if (p.call.lengths->query != p.call.lengths->key)
        fail("cu_seqlens_q and cu_seqlens_k disagree; a token is query and key at once");
      p.call.lengths->query.clear();
    }
    read_lengths(p);
    read_past(p, nk[1]);
    if (!metadata("scale").empty()) p.call.scale = metadata_number("scale");
    read_mask_spec(p);
    set_options(p);
    if (has_shared_heads && !problem_.call.has_state()) disagree("the heads", "k", k, "v", v);
    if (problem_.call.latent != is_latent)
      fail("metadata options: latent keys have no tensor v, and the number of its columns as metadata value_dim");
    if (problem_.call.latent_apart != is_apart)
      fail("metadata options: latent.parts=apart belongs to tensors q_rope and k_rope, and to no others");
    if (problem_.call.layout != p.call.layout || (p.call.lengths && problem_.call.lengths != p.call.lengths) ||
        problem_.call.page_size != p.call.page_size ||
        (p.call.past > 0 && problem_.call.past_lengths != p.call.past_lengths)) {
      fail("metadata options: layout, cumulative lengths, pages and cached lengths come from the file's tensors");
    }
    for (const TensorId id : loss_inputs(problem_)) {
      if (const FileTensor* tensor = find(std::string(name_of(id)))) set_type(problem_, id, *tensor);
    }
    check_launch();
    if (auto fault = find_fault(problem_)) fail(fault->key + ": " + fault->message);
    if (!page_table_) return;
    std::vector<std::int64_t> used;
    for (std::int64_t b = 0; b < problem_.call.batch; ++b) used.push_back(page_count(problem_, b));
    check_page_table(*page_table_, name_, used, pages_);
  }

  /// part_o n,B,H,L,D and part_lse n,B,H,L.
  void read_merge_sizes() {
    const FileTensor &o = floating("part_o"), &lse = floating("part_lse");
    if (!metadata("layout").empty() && metadata("layout") != "bhld") fail("metadata layout: parts are n,B,H,L,D");
    if (o.shape.size() != 5 || o.shape[0] < 1 || o.shape[4] < 1)
      fail("tensor \"part_o\" has shape " + o.shape_text() + "; [n,B,H,L,D] is wanted");
    std::vector<std::int64_t> rows(o.shape.begin(), o.shape.end() - 1);
    const std::vector<std::int64_t> without = rows;
    rows.push_back(1);
    if (lse.shape != without && lse.shape != rows)
      fail("part_lse " + lse.shape_text() + " does not fit part_o " + o.shape_text() + ": [n,B,H,L] is wanted");
    Problem p;
    p.call.op = Op::merge;
    p.call.dtype = *o.stored_type();
    p.call.parts = o.shape[0];
    p.call.batch = o.shape[1];
    p.call.query_heads = p.call.key_heads = o.shape[2];
    p.call.query_length = p.call.key_length = o.shape[3];
    p.call.key_dim = p.call.value_dim = o.shape[4];
    set_type(p, TensorId::part_lse, lse);
    set_options(p);
    if (problem_.call.op != Op::merge) fail("metadata options: parts belong to op=merge");
    if (auto fault = find_fault(problem_)) fail(fault->key + ": " + fault->message);
  }

  /// `p` with the options that the metadata say.
  void set_options(const Problem& p) {
    try {
      problem_ = with_options(p, metadata("options"));
    } catch (const CaseError& error) {
      fail(fmt::format("metadata options, column {}: {}", error.column(), error.what()));
    }
  }

  /// That of the options, which sizes are read by; a word that is none is complained about where the options are.
  Op stated_operator() const {
    std::istringstream words(metadata("options"));
    for (std::string word; words >> word;) {
      for (const Op op : values_of<Op>()) {
        if (word == "op=" + std::string(name_of(op))) return op;
      }
    }
    return Op::attention;
  }

  /// How many sequences cu_seqlens_q has.
  std::int64_t packed_sequences() const {
    const FileTensor* starts = find("cu_seqlens_q");
    return starts ? std::max<std::int64_t>(starts->size() - 1, 0) : 0;
  }

  /// Lengths of packed sequences: cu_seqlens_q and cu_seqlens_k say where each begins, and the end. With pages, whose
  /// rows aren't packed, seqused_k gives the lengths of the keys.
  void read_starts(Problem& problem) const {
    Call& p = problem.call;
    const char* of_keys = page_table_ ? "seqused_k" : "cu_seqlens_k";
    const FileTensor *q = find("cu_seqlens_q"), *k = find(of_keys);
    if (!q || !k)
      fail(fmt::format("layout thd{} needs cu_seqlens_q and {}", page_table_ ? " with pages" : "", of_keys));
    LengthSpec lengths{lengths_of_starts(*q, name_, "cu_seqlens_q", p.query_length),
                       page_table_ ? checked_lengths(*k, name_, of_keys, p.key_length)
                                   : lengths_of_starts(*k, name_, of_keys, p.key_length)};
    if (lengths.query.size() != lengths.key.size()) {
      fail("cu_seqlens_q " + q->shape_text() + " and " + of_keys + " " + k->shape_text() + " disagree");
    }
    const auto longest = [](const std::vector<std::int64_t>& list) {
      return list.empty() ? 0 : *std::max_element(list.begin(), list.end());
    };
    p.batch = static_cast<std::int64_t>(lengths.key.size());
    p.query_length = longest(lengths.query);
    p.key_length = longest(lengths.key);
    p.lengths = std::move(lengths);
  }

  /// query_lengths and key_lengths, which are data of a call whose lengths are. Packed sequences have theirs already.
  void read_lengths(Problem& problem) const {
    Call& p = problem.call;
    const FileTensor *q = find("query_lengths"), *k = find("key_lengths");
    if (!q && !k) return;
    if (layout_ == Layout::thd) fail("query_lengths and key_lengths: layout thd has cu_seqlens_q and lengths of keys");
    const auto list = [&](const char* name, const FileTensor* tensor, std::int64_t most) {
      std::vector<std::int64_t> lengths(static_cast<std::size_t>(p.batch), most);
      if (tensor) lengths = checked_lengths(*tensor, name_, name, most);
      if (static_cast<std::int64_t>(lengths.size()) != p.batch)
        fail(fmt::format("{} {}: one length for each of {} batches is wanted", name, tensor->shape_text(), p.batch));
      return lengths;
    };
    p.lengths = LengthSpec{list("query_lengths", q, p.query_length), list("key_lengths", k, p.key_length)};
  }

  /// Tensors of calls whose lengths are data, or that append to a cache.
  void check_launch() {
    const Call& p = problem_.call;
    if ((find("query_lengths") || find("key_lengths")) && !p.dynamic)
      fail("query_lengths and key_lengths are data of a run: say dynamic in the metadata options");
    for (const TensorId id : {TensorId::new_k, TensorId::new_v}) {
      const std::string name(name_of(id));
      if (!p.append) {
        if (find(name)) fail(name + " belongs to append: say it in the metadata options");
        continue;
      }
      const FileTensor &tensor = floating(name), &q = floating("q");
      const Index4 n = extents(name, tensor), of_q = extents("q", q);
      const std::int64_t dim = id == TensorId::new_k ? p.key_dim : p.value_dim;
      if (n != Index4{of_q[0], p.key_heads, of_q[2], dim}) {
        fail(fmt::format("{} {}: a row for each of q {}, with {} heads of {}, is wanted", name, tensor.shape_text(),
                         q.shape_text(), p.key_heads, dim));
      }
      set_type(problem_, id, tensor);
    }
    if (p.page_size && (find("cache_k") || find("cache_v")))
      fail("cache_k and cache_v of pages are not compared: a case has a page table of its own");
  }

  /// The tensor's own type, where it isn't the one that it would have.
  static void set_type(Problem& p, TensorId id, const FileTensor& tensor) {
    if (tensor.stored_type() != default_type_of(p, id)) p.call.tensor(id).dtype = tensor.stored_type();
  }

  /// past_k and past_v, B,Hkv,P,D: their keys come before those of k and v.
  void read_past(Problem& problem, std::int64_t heads) const {
    Call& p = problem.call;
    const FileTensor *k = find("past_k"), *v = find("past_v"), *counts = find("past_lengths");
    if (counts && !k) fail("past_lengths belong to past_k and past_v, which are missing");
    if (!k && !v) return;
    if (p.latent && !v) v = k;
    if (!k || !v) fail("past_k and past_v belong together; one is missing");
    const auto check = [&](const char* name, const FileTensor& t, std::int64_t dim) {
      if (t.shape.size() != 4 || t.shape[0] != p.batch || t.shape[1] != heads || t.shape[3] != dim) {
        fail(fmt::format("{} {} does not fit k and v: [{},{},P,{}] is wanted", name, t.shape_text(), p.batch, heads,
                         dim));
      }
    };
    check("past_k", *k, p.key_dim);
    if (!p.latent) check("past_v", *v, p.value_dim);
    set_type(problem, TensorId::past_k, floating("past_k"));
    if (!p.latent) set_type(problem, TensorId::past_v, floating("past_v"));
    if (k->shape[2] != v->shape[2]) fail("past_k " + k->shape_text() + " and past_v " + v->shape_text() + " disagree");
    p.past = k->shape[2];
    p.key_length += p.past;
    if (counts) p.past_lengths = counts_of_past(*counts, name_, p.batch, p.past);
  }

  void read_mask_spec(Problem& problem) {
    Call& p = problem.call;
    const auto found = file_.tensors.find("mask");
    if (found == file_.tensors.end()) return;
    const FileTensor& tensor = found->second;
    if (!tensor.is_numeric() && tensor.dtype != "BOOL")
      fail("mask has type " + tensor.dtype + "; BOOL or a floating type");
    const Index4 full = {p.batch, p.query_heads, p.query_length, p.key_length};
    MaskSpec spec;
    spec.additive = tensor.is_numeric();
    problem.data.mask_fill = Fill{spec.additive ? "normal" : "all", {}};
    if (spec.additive && tensor.stored_type() != p.dtype) p.tensor(TensorId::mask).dtype = tensor.stored_type();
    const std::size_t axes = tensor.shape.size();
    bool fits = axes <= 4;
    for (std::size_t n = 0; fits && n < axes; ++n) {
      const std::size_t axis = n + 4 - axes;
      spec.kept[axis] = tensor.shape[n] != 1 || full[axis] == 1;
      fits = tensor.shape[n] == 1 || tensor.shape[n] == full[axis];
    }
    if (!fits) {
      fail(fmt::format("mask {} does not broadcast to [{},{},{},{}]", tensor.shape_text(), full[0], full[1], full[2],
                       full[3]));
    }
    p.mask = spec;
  }

  std::int64_t page_size_ = 0, pages_ = 0;
  Layout layout_ = Layout::bhld;
  Problem problem_;
};

}  // namespace

FileProblem read_problem(const TensorFile& file, const std::string& name) { return ProblemReader(file, name).read(); }

}  // namespace attest
