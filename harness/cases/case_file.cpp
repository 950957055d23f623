#include "harness/cases/case_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "harness/base/user_error.h"
#include "harness/cases/file_golden.h"
#include "harness/cases/index_tensors.h"
#include "harness/cases/memory.h"
#include "harness/cases/operand_tensors.h"
#include "reference/call/tensor_place.h"
#include "reference/call/tensor_table.h"
#include "reference/options/case_line.h"
#include "reference/options/find_fault.h"

namespace attest {
namespace {

/// Whether it is an input of a backward pass that query rows number.
bool is_of_loss_rows(TensorId id) { return is_of_gradients(id) && row_of(id).axes[1] == Axis::query_heads; }

std::vector<std::int64_t> without_ones(std::vector<std::int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

/// Builds the problem and the storage from a file's tensors; complains with the file's name in front.
class FileCase {
 public:
  FileCase(TensorFile file, std::string name)
      : file_(std::move(file)), name_(std::move(name)), page_table_(find("page_table")) {}

  Case build() {
    Case result;
    if (find("part_o"))
      read_merge_sizes();
    else
      read_sizes();
    result.problem = problem_;
    result.label = name_;
    result.from_file = true;
    result.content = file_.content;
    check_memory(problem_, name_);
    result.inputs = read_inputs();
    std::set<std::string> inputs = {"q",
                                    "k",
                                    "v",
                                    "mask",
                                    "past_k",
                                    "past_v",
                                    "keep",
                                    "cu_seqlens_q",
                                    "cu_seqlens_k",
                                    "page_table",
                                    "seqused_k",
                                    "indices",
                                    "past_lengths",
                                    "new_k",
                                    "new_v",
                                    "q_rope",
                                    "k_rope",
                                    "query_lengths",
                                    "key_lengths",
                                    "q_scales",
                                    "k_scales",
                                    "v_scales"};
    for (const TensorId id : drawn_inputs()) inputs.emplace(row_of(id).name);
    for (const TensorId id : operand_inputs()) inputs.emplace(row_of(id).name);
    for (const TensorId id : gradient_inputs()) inputs.emplace(row_of(id).name);
    result.golden = read_golden(file_, name_, inputs);
    if (result.golden) check_gradients(*result.golden);
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw UserError(name_ + ": " + message); }
  std::string metadata(const std::string& key) const { return FileMetadata(file_, name_).text(key); }
  double metadata_number(const std::string& key) const { return FileMetadata(file_, name_).number(key); }

  const FileTensor& floating(const std::string& key) const {
    const auto found = file_.tensors.find(key);
    if (found == file_.tensors.end()) fail("tensor \"" + key + "\" is missing; q, k and v are needed");
    if (!found->second.is_numeric()) {
      fail("tensor \"" + key + "\" has type " + found->second.dtype + "; F64, F32, F16, BF16, F8_E4M3, F8_E5M2 or I8");
    }
    return found->second;
  }

  const FileTensor* find(const std::string& key) const {
    const auto found = file_.tensors.find(key);
    return found == file_.tensors.end() ? nullptr : &found->second;
  }

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
    for (const TensorId id : gradient_inputs()) {
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

  /// Those that are nothing but numbers.
  std::vector<TensorId> drawn_inputs() const {
    std::vector<TensorId> list = inputs_of(problem_);
    std::erase_if(list, [](TensorId id) {
      return !row_of(id).drawn || is_of_loss_rows(id) || is_of_operands(id) || is_scales(id);
    });
    return list;
  }

  std::vector<TensorId> operand_inputs() const {
    std::vector<TensorId> list = inputs_of(problem_);
    std::erase_if(list, [](TensorId id) { return !is_of_operands(id); });
    return list;
  }

  /// Those of a backward pass, which query rows number: as q, or one number for each row.
  std::vector<TensorId> gradient_inputs() const {
    std::vector<TensorId> list = inputs_of(problem_);
    std::erase_if(list, [](TensorId id) { return !is_of_loss_rows(id); });
    return list;
  }

  /// Gradients among the results are ones that this case has.
  void check_gradients(const Golden& golden) const {
    for (const auto& [name, tensor] : golden.stages) {
      const TensorRow* row = find_row(name);
      if (!row || !row->result || !is_gradient(*row->result)) continue;
      Problem asked = problem_;
      asked.call.outputs = {*row->result};
      if (auto fault = find_fault(asked)) fail("tensor \"" + name + "\": " + fault->message);
    }
  }

  void read_tensor(TensorId id, CaseInputs& inputs) const {
    const FileTensor& tensor = floating(std::string(row_of(id).name));
    TensorStorage& storage = inputs.add(problem_, id);
    const TensorPlace& place = storage.place();
    const Index4& n = place.shape;
    if (layout_ == Layout::thd) {  // T,H,D in the file as in storage
      each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
        const std::int64_t row = place.starts[static_cast<std::size_t>(b)] + l;
        if (l < place.rows(b)) storage.set(b, h, l, d, tensor.at((row * n[1] + h) * n[3] + d));
      });
      return;
    }
    // bhld keeps heads before positions in the file; blhd and bld keep positions first.
    const bool heads_first = tensor.shape.size() == 4 && layout_ == Layout::bhld;
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const std::int64_t at =
          heads_first ? ((b * n[1] + h) * n[2] + l) * n[3] + d : ((b * n[2] + l) * n[1] + h) * n[3] + d;
      storage.set(b, h, l, d, tensor.at(at));
    });
  }

  /// A tensor of a backward pass: with axes as q's and features of its own, or with one number for each query row.
  void read_gradient_input(TensorId id, CaseInputs& inputs) const {
    const std::string name(name_of(id));
    const Call& p = problem_.call;
    if (!find(name)) fail(fmt::format("tensor \"{}\" is missing; pass={} needs it", name, name_of(p.pass)));
    const FileTensor &tensor = floating(name), &q = floating("q");
    const bool is_packed = layout_ == Layout::thd, has_features = row_of(id).axes[3] != Axis::one;
    FileTensor wanted;
    if (has_features) {
      wanted.shape = q.shape;
      wanted.shape.back() = q.shape.back() / p.key_dim * p.value_dim;
    } else if (is_packed) {
      wanted.shape = {q.shape[0], q.shape[1]};
    } else {
      wanted.shape = {p.batch, p.query_heads, p.query_length};
    }
    const bool fits =
        has_features ? tensor.shape == wanted.shape : without_ones(tensor.shape) == without_ones(wanted.shape);
    if (!fits) fail(fmt::format("{} {}: {} is wanted", name, tensor.shape_text(), wanted.shape_text()));
    if (has_features) return read_tensor(id, inputs);
    TensorStorage& storage = inputs.add(problem_, id);
    const TensorPlace& place = storage.place();
    each_index({p.batch, p.query_heads, p.query_length, 1}, [&](auto b, auto h, auto i, auto) {
      if (is_packed && i >= place.rows(b)) return;
      const std::int64_t row = is_packed ? (place.starts[static_cast<std::size_t>(b)] + i) * p.query_heads + h
                                         : (b * p.query_heads + h) * p.query_length + i;
      storage.set(b, h, i, 0, tensor.at(row));
    });
  }

  CaseInputs read_inputs() const {
    CaseInputs inputs;
    if (problem_.call.has_parts()) {
      for (const TensorId id : {TensorId::part_o, TensorId::part_lse})
        read_dense(floating(std::string(name_of(id))), id, inputs);
      return inputs;
    }
    add_small_inputs(problem_, inputs);
    read_tensor(TensorId::q, inputs);
    if (has_tensor(problem_, TensorId::q_rope)) read_tensor(TensorId::q_rope, inputs);
    for (const TensorId id : {TensorId::k, TensorId::v, TensorId::k_rope}) {
      if (!has_tensor(problem_, id)) continue;
      if (page_table_)
        read_pages(id, inputs);
      else
        read_tensor(id, inputs);
    }
    for (const TensorId id : {TensorId::past_k, TensorId::past_v}) {
      if (find(std::string(name_of(id)))) read_dense(*find(std::string(name_of(id))), id, inputs);
    }
    for (const TensorId id : {TensorId::new_k, TensorId::new_v}) {
      if (has_tensor(problem_, id)) read_tensor(id, inputs);
    }
    for (const TensorId id : drawn_inputs()) read_drawn(id, inputs);
    if (problem_.call.select) read_indices(inputs);
    for (const TensorId id : operand_inputs()) read_operand_tensor(file_, name_, problem_, id, inputs);
    read_code_scales(file_, name_, problem_, page_table_ ? std::optional(pages_) : std::nullopt, inputs);
    read_keep(inputs);
    if (problem_.call.mask) read_mask(inputs);
    for (const TensorId id : gradient_inputs()) {
      const bool is_saved = has_place_for_each(id);
      if (!is_saved || find(std::string(name_of(id)))) read_gradient_input(id, inputs);
    }
    if (has_tensor(problem_, TensorId::saved_o)) save_forward(problem_, inputs, 1, true);
    return inputs;
  }

  /// indices: B,Hkv,Lq,n, or B,1,Lq,n of lists that heads share.
  void read_indices(CaseInputs& inputs) const {
    const FileTensor* lists = find("indices");
    TensorStorage& storage = inputs.add(problem_, TensorId::indices);
    const Index4 n = storage.shape();
    if (!lists) fail("tensor \"indices\" is missing; select needs it");
    if (layout_ == Layout::thd) fail("indices of packed queries can't be read; give a batch");
    if ((lists->dtype != "I32" && lists->dtype != "I64") || lists->shape != std::vector{n[0], n[1], n[2], n[3]}) {
      fail(fmt::format("indices {} of {}: I32 or I64 of [{},{},{},{}] is wanted", lists->shape_text(), lists->dtype,
                       n[0], n[1], n[2], n[3]));
    }
    std::int64_t at = 0;
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t entry) {
      const double number = lists->at(at++);
      if (number < -1 || number >= static_cast<double>(selectable(problem_.call, b))) {
        fail(fmt::format("indices[{},{},{},{}] = {} is out of range: -1, or 0 to {}", b, h, i, entry, number,
                         selectable(problem_.call, b) - 1));
      }
      storage.set(b, h, i, entry, number);
    });
  }

  void read_mask(CaseInputs& inputs) const {
    const FileTensor& mask = file_.tensors.at("mask");
    for (std::int64_t n = 0; n < mask.size(); ++n) {
      if (mask.at(n) == kInfinity) fail("mask holds +infinity, which no softmax can use");
    }
    read_dense(mask, TensorId::mask, inputs);
  }

  /// The pages that sequences use, in the shuffled order of this case's own table; a page that two share becomes two.
  void read_pages(TensorId id, CaseInputs& inputs) const {
    const FileTensor& tensor = floating(std::string(name_of(id)));
    TensorStorage& storage = inputs.add(problem_, id);
    const Index4 n = storage.shape();
    const Inputs views = inputs.views();
    for (std::int64_t b = 0; b < problem_.call.batch; ++b) {
      for (std::int64_t i = 0; i < page_count(problem_, b); ++i) {
        const auto from = static_cast<std::int64_t>(page_table_->at(b * page_table_->shape[1] + i));
        const std::int64_t to = views.page(b, i);
        each_index({1, n[1], n[2], n[3]}, [&](std::int64_t, std::int64_t h, std::int64_t l, std::int64_t d) {
          const std::int64_t row = layout_ == Layout::bhld ? h * n[2] + l : l * n[1] + h;
          storage.set(to, h, l, d, tensor.at((from * n[1] * n[2] + row) * n[3] + d));
        });
      }
    }
  }

  /// One number after the other.
  void read_dense(const FileTensor& tensor, TensorId id, CaseInputs& inputs) const {
    TensorStorage& storage = inputs.add(problem_, id);
    std::int64_t at = 0;
    each_index(storage.shape(), [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      storage.set(b, h, l, d, tensor.at(at++));
    });
  }

  /// Four axes, or B,L,H*D as q, k and v in the layout bld; of packed sequences T,H,D.
  void read_drawn(TensorId id, CaseInputs& inputs) const {
    const std::string name(row_of(id).name);
    const FileTensor* tensor = find(name);
    const Index4 n = stored_shape(problem_, id);
    if (is_packed(problem_, id)) {
      const std::int64_t tokens = floating("q").shape[0];
      if (!tensor || !tensor->is_numeric() || tensor->shape != std::vector{tokens, n[1], n[3]}) {
        fail(fmt::format("{} {}: [{},{},{}] is wanted", name,
                         tensor ? tensor->shape_text() + " of " + tensor->dtype : "is missing", tokens, n[1], n[3]));
      }
      return read_tensor(id, inputs);
    }
    const bool packed = tensor && tensor->shape.size() == 3;
    const bool fits = tensor && tensor->is_numeric() &&
                      (packed ? tensor->shape == std::vector{n[0], n[2], n[1] * n[3]}
                              : tensor->shape == std::vector{n[0], n[1], n[2], n[3]});
    if (!fits) {
      fail(fmt::format("{} {}: [{},{},{},{}] is wanted{}", name,
                       tensor ? tensor->shape_text() + " of " + tensor->dtype : "is missing", n[0], n[1], n[2], n[3],
                       packed ? ", or with three axes B,L,H*D" : ""));
    }
    TensorStorage& storage = inputs.add(problem_, id);
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const std::int64_t at = packed ? ((b * n[2] + l) * n[1] + h) * n[3] + d : ((b * n[1] + h) * n[2] + l) * n[3] + d;
      storage.set(b, h, l, d, tensor->at(at));
    });
  }

  /// Dropout's decisions, when the file makes them.
  void read_keep(CaseInputs& inputs) const {
    const FileTensor* keep = find("keep");
    if (!keep) return;
    const Call& p = problem_.call;
    const std::int64_t wanted = p.batch * p.query_heads * p.query_length * p.key_length;
    if (keep->size() != wanted || keep->is_numeric()) {
      fail(fmt::format("keep {} of {}: one BOOL for each of [{},{},{},{}] is wanted", keep->shape_text(), keep->dtype,
                       p.batch, p.query_heads, p.query_length, p.key_length));
    }
    read_dense(*keep, TensorId::keep, inputs);
  }

  TensorFile file_;
  std::string name_;
  const FileTensor* page_table_;
  std::int64_t page_size_ = 0, pages_ = 0;
  Layout layout_ = Layout::bhld;
  Problem problem_;
};

}  // namespace

Case case_from_tensors(TensorFile file, const std::string& name) { return FileCase(std::move(file), name).build(); }

Case case_from_file(const std::filesystem::path& path) {
  return case_from_tensors(read_safetensors(path), path.string());
}

}  // namespace attest
