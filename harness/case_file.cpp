// Cases from .safetensors files.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <set>
#include <sstream>

#include "harness/case.h"
#include "harness/user_error.h"
#include "reference/case_line.h"

namespace attest {
namespace {

/// Builds the problem and the storage from a file's tensors; complains with the file's name in front.
class FileCase {
 public:
  FileCase(TensorFile file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  Case build() {
    Case result;
    read_sizes();
    result.problem = problem_;
    result.label = name_;
    result.from_file = true;
    check_memory(problem_, name_);
    result.inputs = read_inputs();
    result.golden = read_golden();
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw UserError(name_ + ": " + message); }

  std::string metadata(const std::string& key) const {
    const auto found = file_.metadata.find(key);
    return found == file_.metadata.end() ? "" : found->second;
  }

  double metadata_number(const std::string& key, const std::string& text) const {
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size() || !std::isfinite(value)) {
      fail("metadata " + key + " \"" + text.substr(0, 40) + "\" is not a finite number");
    }
    return value;
  }

  const FileTensor& floating(const std::string& key) const {
    const auto found = file_.tensors.find(key);
    if (found == file_.tensors.end()) fail("tensor \"" + key + "\" is missing; q, k and v are needed");
    if (!found->second.is_floating()) {
      fail("tensor \"" + key + "\" has type " + found->second.dtype + "; F64, F32, F16 or BF16");
    }
    return found->second;
  }

  const FileTensor* find(const std::string& key) const {
    const auto found = file_.tensors.find(key);
    return found == file_.tensors.end() ? nullptr : &found->second;
  }

  static DType dtype_of(const FileTensor& tensor) {
    return tensor.dtype == "F64"    ? DType::f64
           : tensor.dtype == "F16"  ? DType::f16
           : tensor.dtype == "BF16" ? DType::bf16
                                    : DType::f32;
  }

  /// Extents as B,H,L,D whatever the layout in the file: 2 axes are L,D; 3 are B,L,D (bld: heads from metadata).
  Index4 extents(const std::string& key, const FileTensor& tensor) const {
    const auto& n = tensor.shape;
    Index4 shape{};
    if (n.size() == 2) {
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
    const std::string text = metadata(key == "q" ? "heads" : "kv_heads");
    const std::string value = text.empty() ? metadata("heads") : text;
    if (value.empty()) return 1;
    const double heads = metadata_number("heads", value);
    if (!(heads >= 1 && heads <= 65536 && heads == std::floor(heads))) fail("metadata heads is no head count");
    return static_cast<std::int64_t>(heads);
  }

  void read_sizes() {
    const std::string layout = metadata("layout");
    if (layout == "blhd")
      layout_ = Layout::blhd;
    else if (layout == "bld")
      layout_ = Layout::bld;
    else if (!layout.empty() && layout != "bhld")
      fail("metadata layout \"" + layout + "\"; bhld, blhd or bld");

    const FileTensor &q = floating("q"), &k = floating("k"), &v = floating("v");
    const Index4 nq = extents("q", q), nk = extents("k", k), nv = extents("v", v);
    const auto disagree = [&](const char* what, const char* a, const FileTensor& x, const char* b,
                              const FileTensor& y) {
      fail(fmt::format("{} of {} {} and {} {} disagree", what, a, x.shape_text(), b, y.shape_text()));
    };
    if (nq[0] != nk[0]) disagree("the batch", "q", q, "k", k);
    if (nq[0] != nv[0]) disagree("the batch", "q", q, "v", v);
    if (nk[1] != nv[1]) disagree("the heads", "k", k, "v", v);
    if (nk[2] != nv[2]) disagree("the length", "k", k, "v", v);
    if (nq[3] != nk[3]) disagree("the head dimension", "q", q, "k", k);
    if (q.dtype != k.dtype) disagree("the type", "q", q, "k", k);
    if (q.dtype != v.dtype) disagree("the type", "q", q, "v", v);
    if (nk[1] == 0 ? nq[1] != 0 : nq[1] % nk[1] != 0) disagree("the heads", "q", q, "k", k);
    if (nq[3] < 1 || nv[3] < 1) fail("a head dimension of 0");

    Problem p;
    p.dtype = dtype_of(q);
    p.batch = nq[0];
    p.query_heads = nq[1];
    p.key_heads = nk[1];
    p.query_length = nq[2];
    p.key_length = nk[2];
    p.key_dim = nq[3];
    p.value_dim = nv[3];
    p.layout = layout_;
    read_past(p, nk[1]);
    if (const std::string scale = metadata("scale"); !scale.empty()) p.scale = metadata_number("scale", scale);
    read_mask_spec(p);
    try {
      problem_ = with_options(p, metadata("options"));
    } catch (const CaseError& error) {
      fail(fmt::format("metadata options, column {}: {}", error.column(), error.what()));
    }
    if (auto fault = find_fault(problem_)) fail(fault->key + ": " + fault->message);
  }

  /// past_k and past_v, B,Hkv,P,D: their keys come before those of k and v.
  void read_past(Problem& p, std::int64_t heads) const {
    const FileTensor *k = find("past_k"), *v = find("past_v");
    if (!k && !v) return;
    if (!k || !v) fail("past_k and past_v belong together; one is missing");
    const auto check = [&](const char* name, const FileTensor& t, std::int64_t dim) {
      if (t.shape.size() != 4 || t.shape[0] != p.batch || t.shape[1] != heads || t.shape[3] != dim ||
          !t.is_floating() || dtype_of(t) != p.dtype) {
        fail(fmt::format("{} {} of {} does not fit k and v: [{},{},P,{}] of their type is wanted", name, t.shape_text(),
                         t.dtype, p.batch, heads, dim));
      }
    };
    check("past_k", *k, p.key_dim);
    check("past_v", *v, p.value_dim);
    if (k->shape[2] != v->shape[2]) fail("past_k " + k->shape_text() + " and past_v " + v->shape_text() + " disagree");
    p.past = k->shape[2];
    p.key_length += p.past;
  }

  void read_mask_spec(Problem& p) {
    const auto found = file_.tensors.find("mask");
    if (found == file_.tensors.end()) return;
    const FileTensor& tensor = found->second;
    if (!tensor.is_floating() && tensor.dtype != "BOOL")
      fail("mask has type " + tensor.dtype + "; BOOL or a floating type");
    const Index4 full = {p.batch, p.query_heads, p.query_length, p.key_length};
    MaskSpec spec;
    spec.additive = tensor.is_floating();
    spec.fill = Fill{spec.additive ? "normal" : "all", {}};
    if (spec.additive) {
      if (dtype_of(tensor) != p.dtype) spec.dtype = dtype_of(tensor);
    }
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

  TensorStorage read_tensor(TensorId id, const std::string& key) const {
    const FileTensor& tensor = floating(key);
    TensorStorage storage(problem_, id, problem_.dtype);
    const Index4 n = storage.shape();
    // bhld keeps heads before positions in the file; blhd and bld keep positions first.
    const bool heads_first = tensor.shape.size() == 4 && layout_ == Layout::bhld;
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const std::int64_t at =
          heads_first ? ((b * n[1] + h) * n[2] + l) * n[3] + d : ((b * n[2] + l) * n[1] + h) * n[3] + d;
      storage.set(b, h, l, d, tensor.at(at));
    });
    return storage;
  }

  CaseInputs read_inputs() const {
    CaseInputs inputs;
    inputs.q = read_tensor(TensorId::q, "q");
    inputs.k = read_tensor(TensorId::k, "k");
    inputs.v = read_tensor(TensorId::v, "v");
    const Problem& p = problem_;
    make_small_inputs(p, inputs);
    if (p.page_size) fail("metadata options: paged is for case lines");
    if (p.packed_sequences()) fail("metadata options: layout=thd is for case lines");
    if (find("past_k")) {
      inputs.past_k = read_dense("past_k");
      inputs.past_v = read_dense("past_v");
    }
    for (const ExtraInput& spec : inputs.extra_specs) inputs.extra.push_back(read_extra(spec));
    read_keep(inputs);
    if (!p.mask) return inputs;
    inputs.has_mask = true;
    inputs.additive = p.mask->additive;
    const FileTensor& tensor = file_.tensors.at("mask");
    inputs.mask = p.mask->additive ? TensorStorage(p, TensorId::mask, p.mask_dtype()) : TensorStorage::boolean(p);
    std::int64_t at = 0;
    each_index(inputs.mask.shape(), [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
      const double value = tensor.at(at++);
      if (value == kInfinity) fail("mask holds +infinity, which no softmax can use");
      if (p.mask->additive)
        inputs.mask.set(b, h, i, j, value);
      else
        inputs.mask.set_byte(b, h, i, j, value != 0);
    });
    return inputs;
  }

  TensorStorage read_dense(const std::string& key) const {
    const FileTensor& tensor = floating(key);
    TensorStorage storage({tensor.shape[0], tensor.shape[1], tensor.shape[2], tensor.shape[3]}, problem_.dtype);
    std::int64_t at = 0;
    each_index(storage.shape(), [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      storage.set(b, h, l, d, tensor.at(at++));
    });
    return storage;
  }

  /// An input of one operator: four axes, or B,L,H*D as q, k and v in the layout bld.
  TensorStorage read_extra(const ExtraInput& spec) const {
    const std::string name(spec.name);
    const FileTensor* tensor = find(name);
    const Index4& n = spec.shape;
    const bool packed = tensor && tensor->shape.size() == 3;
    const bool fits = tensor && tensor->is_floating() && dtype_of(*tensor) == problem_.dtype &&
                      (packed ? tensor->shape == std::vector{n[0], n[2], n[1] * n[3]}
                              : tensor->shape == std::vector{n[0], n[1], n[2], n[3]});
    if (!fits) {
      fail(fmt::format("{} {}: [{},{},{},{}] of the type of q is wanted{}", name,
                       tensor ? tensor->shape_text() + " of " + tensor->dtype : "is missing", n[0], n[1], n[2], n[3],
                       packed ? ", or with three axes B,L,H*D" : ""));
    }
    TensorStorage storage(n, problem_.dtype);
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const std::int64_t at =
          packed ? ((b * n[2] + l) * n[1] + h) * n[3] + d : ((b * n[1] + h) * n[2] + l) * n[3] + d;
      storage.set(b, h, l, d, tensor->at(at));
    });
    return storage;
  }

  /// Dropout's decisions, when the file makes them.
  void read_keep(CaseInputs& inputs) const {
    const FileTensor* keep = find("keep");
    if (!keep) return;
    const Problem& p = problem_;
    const std::int64_t wanted = p.batch * p.query_heads * p.query_length * p.key_length;
    if (keep->size() != wanted || keep->is_floating()) {
      fail(fmt::format("keep {} of {}: one BOOL for each of [{},{},{},{}] is wanted", keep->shape_text(), keep->dtype,
                       p.batch, p.query_heads, p.query_length, p.key_length));
    }
    for (std::int64_t n = 0; n < wanted; ++n) inputs.keep.push_back(keep->at(n) != 0);
  }

  std::optional<Golden> read_golden() const {
    std::set<std::string> inputs = {"q", "k", "v", "mask", "past_k", "past_v", "keep"};
    for (const ExtraInput& spec : extra_inputs(problem_)) inputs.emplace(spec.name);
    Golden golden;
    for (const auto& [key, tensor] : file_.tensors) {
      if (!inputs.contains(key)) golden.stages.emplace(key, tensor);
    }
    golden.about = metadata("about").empty() ? metadata("origin") : metadata("about");
    if (const std::string text = metadata("tolerance"); !text.empty()) {
      golden.tolerance = metadata_number("tolerance", text);
      if (!(*golden.tolerance >= 0)) fail("metadata tolerance is negative");
    }
    if (const std::string text = metadata("relative_tolerance"); !text.empty()) {
      golden.relative = metadata_number("relative_tolerance", text);
      if (!(golden.relative >= 0)) fail("metadata relative_tolerance is negative");
    }
    golden.producer = read_producer(metadata("producer"));
    std::istringstream tokens(metadata("tokens"));
    for (std::string token; tokens >> token;) golden.tokens.push_back(token);
    if (golden.stages.empty()) return std::nullopt;
    if (!golden.tolerance && !golden.producer) {
      fail("it holds results (" + golden.stages.begin()->first +
           ") but neither metadata tolerance nor producer says how exact they are");
    }
    return golden;
  }

  /// "float32 accumulation, q scaled before the product, exp within 4 ulps (assumed), IEEE division"
  std::optional<Arithmetic> read_producer(const std::string& text) const {
    if (text.empty()) return std::nullopt;
    Arithmetic a;
    a.normalised_before_storage = true;
    if (text.find("float64 accumulation") != std::string::npos)
      a.accumulator = a.stored_weights = DType::f64;
    else if (text.find("float32 accumulation") == std::string::npos) {
      fail("metadata producer does not say \"float32 accumulation\" or \"float64 accumulation\"");
    }
    if (const std::size_t at = text.find("exp within "); at != std::string::npos) {
      double ulps = 0;
      const char* from = text.data() + at + 11;
      if (std::from_chars(from, text.data() + text.size(), ulps).ec == std::errc() && ulps > 0 && ulps < 1e6) {
        a.exp_ulps = a.log_ulps = ulps;
      } else {
        fail("metadata producer: \"exp within N ulps\" is wanted");
      }
    }
    return a;
  }

  TensorFile file_;
  std::string name_;
  Layout layout_ = Layout::bhld;
  Problem problem_;
};

}  // namespace

Case case_from_file(const std::filesystem::path& path) {
  return FileCase(read_safetensors(path), path.string()).build();
}

}  // namespace attest
