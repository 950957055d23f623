// Cases from .safetensors files.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
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
    if (!found->second.is_floating()) fail("tensor \"" + key + "\" has type " + found->second.dtype + "; F32 or F64");
    return found->second;
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
    if (layout == "blhd") layout_ = Layout::blhd;
    else if (layout == "bld") layout_ = Layout::bld;
    else if (!layout.empty() && layout != "bhld") fail("metadata layout \"" + layout + "\"; bhld, blhd or bld");

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
    p.dtype = q.dtype == "F64" ? DType::f64 : DType::f32;
    p.batch = nq[0];
    p.query_heads = nq[1];
    p.key_heads = nk[1];
    p.query_length = nq[2];
    p.key_length = nk[2];
    p.key_dim = nq[3];
    p.value_dim = nv[3];
    p.layout = layout_;
    if (const std::string scale = metadata("scale"); !scale.empty()) p.scale = metadata_number("scale", scale);
    read_mask_spec(p);
    try {
      problem_ = with_options(p, metadata("options"));
    } catch (const CaseError& error) {
      fail(fmt::format("metadata options, column {}: {}", error.column(), error.what()));
    }
    if (auto fault = find_fault(problem_)) fail(fault->key + ": " + fault->message);
  }

  void read_mask_spec(Problem& p) {
    const auto found = file_.tensors.find("mask");
    if (found == file_.tensors.end()) return;
    const FileTensor& tensor = found->second;
    if (!tensor.is_floating() && tensor.dtype != "BOOL") fail("mask has type " + tensor.dtype + "; BOOL, F32 or F64");
    const Index4 full = {p.batch, p.query_heads, p.query_length, p.key_length};
    MaskSpec spec;
    spec.additive = tensor.is_floating();
    spec.fill = Fill{spec.additive ? "normal" : "all", {}};
    if (spec.additive) {
      const DType dtype = tensor.dtype == "F64" ? DType::f64 : DType::f32;
      if (dtype != p.dtype) spec.dtype = dtype;
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

  template <class Set>
  static void each_index(const Index4& n, const Set& set) {
    for (std::int64_t b = 0; b < n[0]; ++b) {
      for (std::int64_t h = 0; h < n[1]; ++h) {
        for (std::int64_t l = 0; l < n[2]; ++l) {
          for (std::int64_t d = 0; d < n[3]; ++d) set(b, h, l, d);
        }
      }
    }
  }

  TensorStorage read_tensor(TensorId id, const std::string& key) const {
    const FileTensor& tensor = floating(key);
    TensorStorage storage(problem_, id, problem_.dtype);
    const Index4 n = storage.shape();
    // bhld keeps heads before positions in the file; blhd and bld keep positions first.
    const bool heads_first = tensor.shape.size() == 4 && layout_ == Layout::bhld;
    each_index(n, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
      const std::int64_t at = heads_first ? ((b * n[1] + h) * n[2] + l) * n[3] + d
                                          : ((b * n[2] + l) * n[1] + h) * n[3] + d;
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
    inputs.mask_shape = {p.batch, p.query_heads, p.query_length, p.key_length};
    if (!p.mask) return inputs;
    inputs.has_mask = true;
    inputs.additive = p.mask->additive;
    const FileTensor& tensor = file_.tensors.at("mask");
    inputs.mask = p.mask->additive ? TensorStorage(p, TensorId::mask, p.mask_dtype()) : TensorStorage::boolean(p);
    std::int64_t at = 0;
    each_index(inputs.mask.shape(), [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
      const double value = tensor.at(at++);
      if (value == kInfinity) fail("mask holds +infinity, which no softmax can use");
      if (p.mask->additive) inputs.mask.set(b, h, i, j, value);
      else inputs.mask.set_byte(b, h, i, j, value != 0);
    });
    return inputs;
  }

  std::optional<Golden> read_golden() const {
    Golden golden;
    for (const auto& [key, tensor] : file_.tensors) {
      if (key != "q" && key != "k" && key != "v" && key != "mask") golden.stages.emplace(key, tensor);
    }
    golden.about = metadata("about").empty() ? metadata("origin") : metadata("about");
    if (const std::string text = metadata("tolerance"); !text.empty()) {
      golden.tolerance = metadata_number("tolerance", text);
      if (!(*golden.tolerance >= 0)) fail("metadata tolerance is negative");
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
    if (text.find("float64 accumulation") != std::string::npos) a.accumulator = a.stored_weights = DType::f64;
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

Case case_from_file(const std::filesystem::path& path) { return FileCase(read_safetensors(path), path.string()).build(); }

}  // namespace attest
