#include "harness/search/shrink_file.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/base/user_error.h"
#include "harness/cases/case_file.h"
#include "harness/cases/operand_tensors.h"
#include "harness/search/shrink.h"
#include "reference/call/tensor_table.h"
#include "reference/options/case_line.h"
#include "reference/options/options.h"
#include "reference/softmax/key_place.h"
#include "reference/softmax/philox.h"

namespace attest {
namespace {

/// What the metadata of a file with dense tensors say.
std::string metadata_options(const Problem& problem) {
  std::string text;
  for (const Option* option : set_options(problem)) {
    if (option->in_files == InFiles::said) text += (text.empty() ? "" : " ") + token_of(*option, problem);
  }
  return text;
}

/// A tensor whose element (b, h, l, d) is value(b, h, l, d).
template <class Value>
FileTensor filled(DType dtype, const Index4& shape, const Value& value) {
  FileTensor tensor{file_type_of(dtype), {shape.begin(), shape.end()}, {}};
  std::int64_t at = 0;
  tensor.bytes.resize(bytes_of(dtype, static_cast<std::size_t>(tensor.size())));
  each_index(shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    store(tensor.bytes.data(), dtype, at++, value(b, h, l, d));
  });
  return tensor;
}

FileTensor dense(const ConstTensor& view) {
  if (view.dtype == DType::boolean) {
    FileTensor tensor{"BOOL", {view.shape.begin(), view.shape.end()}, {}};
    each_index(view.shape, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
      tensor.bytes.push_back(static_cast<const std::byte*>(view.data)[view.offset(b, h, i, j)]);
    });
    return tensor;
  }
  return filled(view.dtype, view.shape, [&](std::int64_t b, std::int64_t h, std::int64_t l, std::int64_t d) {
    return load(view.data, view.dtype, view.offset(b, h, l, d));
  });
}

enum class Rows : std::uint8_t { past, fresh };

/// Rows of keys or values of every batch, out of their pages or packed sequences; what those don't store becomes 0.
FileTensor dense_cached(const Inputs& inputs, const Call& p, Cache cache, Rows which, std::int64_t rows) {
  const std::int64_t dim = cache == Cache::keys ? p.key_dim : p.value_dim;
  const TensorId of_keys = which == Rows::past ? TensorId::past_k : TensorId::k;
  const TensorId of_values = which == Rows::past ? TensorId::past_v : TensorId::v;
  const DType type = type_of(p, cache == Cache::keys ? of_keys : of_values);
  return filled(type, {p.batch, p.key_heads, rows, dim},
                [&](std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t d) {
                  const std::int64_t past = p.past_length(b), j = which == Rows::past ? row : past + row;
                  const bool there = j < p.key_count(b) && (which == Rows::fresh || j < past);
                  return there ? load_cached(p, inputs, cache, b, h, j, d) : 0;
                });
}

FileTensor counts_tensor(const std::vector<std::int64_t>& counts) {
  FileTensor tensor{"I32", {static_cast<std::int64_t>(counts.size())}, {}};
  tensor.bytes.resize(counts.size() * size_of(DType::i32));
  for (std::size_t b = 0; b < counts.size(); ++b)
    store(tensor.bytes.data(), DType::i32, static_cast<std::int64_t>(b), static_cast<double>(counts[b]));
  return tensor;
}

/// A mask for more keys, which nobody sees.
void add_keys(FileTensor& mask, std::int64_t keys) {
  const std::size_t before = static_cast<std::size_t>(mask.shape[3]);
  if (before <= 1 || mask.size() == 0) return;
  const std::size_t row = mask.bytes.size() / static_cast<std::size_t>(mask.size()) * before;
  const std::size_t more = row / before * static_cast<std::size_t>(keys);
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at < mask.bytes.size(); at += row) {
    bytes.insert(bytes.end(), &mask.bytes[at], &mask.bytes[at] + row);
    bytes.resize(bytes.size() + more);
  }
  mask.bytes = std::move(bytes);
  mask.shape[3] += keys;
}

/// A tensor that query rows number; what packed sequences don't store becomes 0.
FileTensor padded(const Inputs& inputs, const Call& p, TensorId id) {
  const ConstTensor& from = inputs.at(id);
  return filled(from.dtype, seen_shape(p, id), [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) {
    return i < p.query_count(b) ? load(from.data, from.dtype, from.offset(b, h, i, d)) : 0;
  });
}

/// Dropout's decisions as a tensor: those given, or those that the seed draws.
FileTensor decisions(const Inputs& inputs, const Call& p) {
  const Index4 shape = {p.batch, p.query_heads, p.query_length, p.key_length};
  FileTensor tensor{"BOOL", {shape.begin(), shape.end()}, {}};
  const std::uint64_t threshold = dropout_threshold(p.dropout);
  each_index(shape, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const bool keep = inputs.keep() ? inputs.kept(b, h, i, j) : dropout_keeps(p.dropout_seed, threshold, b, h, i, j);
    tensor.bytes.push_back(std::byte{keep});
  });
  return tensor;
}

/// Keeps the places of one axis for which `keep` says so; an axis of extent 1 is a broadcast and stays.
void keep_of_axis(FileTensor& tensor, std::size_t axis, const std::function<bool(std::int64_t)>& keep) {
  const std::vector<std::int64_t> shape = tensor.shape;
  const std::int64_t extent = shape[axis];
  if (tensor.size() == 0) return;
  const std::size_t element = tensor.bytes.size() / static_cast<std::size_t>(tensor.size());
  std::int64_t inner = 1, kept = 0;
  for (std::size_t n = axis + 1; n < shape.size(); ++n) inner *= shape[n];
  for (std::int64_t at = 0; at < extent; ++at) kept += keep(at);
  std::vector<std::byte> bytes;
  for (std::int64_t n = 0; n < tensor.size(); ++n) {
    if (!keep(n / inner % extent)) continue;
    const auto from = tensor.bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(n) * element);
    bytes.insert(bytes.end(), from, from + static_cast<std::ptrdiff_t>(element));
  }
  tensor.bytes = std::move(bytes);
  tensor.shape[axis] = kept;
}

/// The sizes of a problem that tensors are cut by.
enum Size { kBatch, kHeads, kNewKeys, kPastKeys, kQueries, kKeyDim, kValueDim };

/// The axis of a tensor that tells a size. Heads are counted in groups.
struct TellingAxis {
  const char* tensor;
  std::size_t axis;
};
constexpr TellingAxis kTelling[] = {{"q", 0}, {"k", 1}, {"k", 2}, {"past_k", 2}, {"q", 2}, {"q", 3}, {"v", 3}};

bool has_size(Axis axis, Size size) {
  switch (axis) {
    case Axis::batch:
    case Axis::stores: return size == kBatch;
    case Axis::query_heads:
    case Axis::q_heads:
    case Axis::key_heads:
    case Axis::k_heads: return size == kHeads;
    case Axis::queries: return size == kQueries;
    case Axis::keys: return size == kNewKeys || size == kPastKeys;
    case Axis::rows: return size == kNewKeys;
    case Axis::past: return size == kPastKeys;
    case Axis::key_dim:
    case Axis::stored_key_dim: return size == kKeyDim;
    case Axis::value_dim: return size == kValueDim;
    default: return false;
  }
}

class FileShrinker {
 public:
  FileShrinker(const TensorFile& failing, const std::function<bool(const Case&)>& fails,
               const std::function<bool()>& go_on)
      : fails_(fails), go_on_(go_on) {
    result_.file = failing;
  }

  ShrunkFile run() {
    try {
      while (take_away() || drop_options() || plainer_numbers()) continue;
    } catch (const OutOfTime&) {
      result_.finished = false;
    }
    return std::move(result_);
  }

 private:
  struct OutOfTime {};

  TensorFile& now() { return result_.file; }

  /// Whether the candidate fails as well; then it is taken.
  bool take(TensorFile candidate) {
    if (!go_on_()) throw OutOfTime{};
    ++result_.tried;
    try {
      if (!fails_(case_from_tensors(candidate, "candidate"))) return false;
    } catch (const UserError&) {
      return false;  // no case at all
    }
    now() = std::move(candidate);
    return true;
  }

  bool take_away() {
    bool any = false;
    for (const Size size : {kBatch, kHeads, kNewKeys, kPastKeys, kQueries, kKeyDim, kValueDim}) {
      const std::int64_t min = size == kPastKeys ? 0 : 1;
      for (std::int64_t chunk = std::max<std::int64_t>(extent(size) / 2, 1); chunk >= 1; chunk /= 2) {
        for (std::int64_t first = 0; first < extent(size) && extent(size) > min;) {
          const std::int64_t before = extent(size);
          const bool taken = take(without(size, first, std::min(chunk, before - min)));
          if (taken && extent(size) < before)
            any = true;
          else
            first += chunk;  // also where it took nothing away: that must not go on for ever
        }
      }
    }
    return any;
  }

  std::int64_t extent(Size size) {
    const auto& [name, axis] = kTelling[size];
    const auto found = now().tensors.find(name);
    return found == now().tensors.end() ? 0 : found->second.shape[axis];
  }

  /// The axes of the file's tensors that have this size.
  static std::vector<std::pair<std::string, std::size_t>> axes_of(Size size) {
    std::vector<std::pair<std::string, std::size_t>> list;
    for (const TensorRow& row : tensor_rows()) {
      for (std::size_t axis = 0; !is_output(row.id) && axis < 4; ++axis) {
        if (has_size(row.axes[axis], size)) list.emplace_back(row.name, axis);
      }
    }
    return list;
  }

  TensorFile without(Size size, std::int64_t first, std::int64_t count) {
    TensorFile file = now();
    const std::int64_t groups = extent(kHeads), heads = file.tensors.at("q").shape[1], past = extent(kPastKeys);
    for (const auto& [name, axis] : axes_of(size)) {
      const auto found = file.tensors.find(name);
      if (found == file.tensors.end()) continue;
      FileTensor& tensor = found->second;
      const bool given = name == "q" || name == "k" || name == "v";  // the others may be broadcast
      const bool broadcast = !given && tensor.shape[axis] == 1;
      if (broadcast) continue;
      const std::int64_t share = size == kHeads && tensor.shape[1] == heads ? heads / groups : 1;
      const bool is_new = name == "k" || name == "v";
      const std::int64_t before = size == kNewKeys && !is_new ? past : 0;  // the past's columns come first
      keep_of_axis(tensor, axis, [&](std::int64_t at) {
        const std::int64_t place = at / share - before;
        return place < first || place >= first + count;
      });
    }
    if (size == kPastKeys && count == past) {
      file.tensors.erase("past_k");
      file.tensors.erase("past_v");
      file.tensors.erase("past_lengths");
    }
    const auto counts = file.tensors.find("past_lengths");
    if (counts == file.tensors.end() || size != kPastKeys) return file;
    std::vector<std::int64_t> left;
    for (std::int64_t b = 0; b < counts->second.size(); ++b) {
      const auto before = static_cast<std::int64_t>(counts->second.at(b));
      left.push_back(before - std::clamp<std::int64_t>(before - first, 0, count));
    }
    counts->second = counts_tensor(left);
    return file;
  }

  bool drop_options() {
    bool any = false;
    for (const char* name : {"mask", "keep", "past_lengths"}) {
      if (!now().tensors.contains(name)) continue;
      TensorFile file = now();
      file.tensors.erase(name);
      any |= take(std::move(file));
    }
    for (bool smaller = true; smaller;) {
      smaller = false;
      Problem problem = case_from_tensors(now(), "now").problem;
      problem.call.scale.reset();  // stands in the metadata of its own
      taken_.insert(metadata_options(problem));
      each_simpler_problem(problem, [&](const Problem& simpler) {
        TensorFile file = now();
        file.metadata["options"] = metadata_options(simpler);
        for (const TensorId id : {TensorId::dout, TensorId::dlse, TensorId::dpresent}) {
          if (!has_tensor(simpler, id)) file.tensors.erase(std::string(name_of(id)));
        }
        if (taken_.contains(file.metadata["options"]) || !take(std::move(file))) return true;
        any = smaller = true;
        return false;
      });
    }
    if (now().metadata.contains("scale")) {
      TensorFile file = now();
      file.metadata.erase("scale");
      any |= take(std::move(file));
    }
    return any;
  }

  /// Each change makes a number plainer and never less plain, so that this ends.
  bool plainer_numbers() {
    constexpr std::int64_t kOneByOne = 512;
    bool any = false;
    for (const char* name :
         {"v", "k", "q", "past_v", "past_k", "mask", "do", "dlse", "dpresent", "part_o", "part_lse"}) {
      const auto found = now().tensors.find(name);
      if (found == now().tensors.end() || !found->second.is_numeric()) continue;
      const std::int64_t size = found->second.size();
      for (int form = 0; form < 3; ++form) any |= change(name, 0, size, form);
      for (std::int64_t n = 0; size <= kOneByOne && n < size; ++n) {
        for (int form = 0; form < 3; ++form) any |= change(name, n, n + 1, form);
      }
    }
    return any;
  }

  /// Numbers [first, last) of a tensor: 0, 1, or without their fraction.
  bool change(const char* name, std::int64_t first, std::int64_t last, int form) {
    TensorFile file = now();
    FileTensor& tensor = file.tensors.at(name);
    const DType dtype = *tensor.stored_type();
    bool changed = false;
    for (std::int64_t n = first; n < last; ++n) {
      const double value = tensor.at(n);
      if (!std::isfinite(value) || value == 0 || (value == 1 && form > 0)) continue;
      const double to = form == 0 ? 0 : form == 1 ? 1 : std::trunc(value);
      if (form == 1 && last - first == 1 && std::fabs(value) < 1) continue;
      changed |= to != value;
      store(tensor.bytes.data(), dtype, n, to);
    }
    return changed && take(std::move(file));
  }

  const std::function<bool(const Case&)>& fails_;
  const std::function<bool()>& go_on_;
  std::set<std::string> taken_;  ///< options that the file had: none comes back
  ShrunkFile result_;
};

}  // namespace

std::optional<TensorFile> plain_file(const Case& source) {
  const Problem& p = source.problem;
  if (!p.call.has_scores() || p.call.blocks || p.call.select || p.call.latent_apart || p.call.has_stored_scales())
    return std::nullopt;
  std::optional<CaseInputs> made;
  if (!source.inputs) made = make_inputs(p);
  const Inputs inputs = source.inputs ? source.inputs->views() : made->views();
  const bool scattered = p.call.packed_sequences() || p.call.page_size;
  TensorFile file;
  file.tensors["q"] = scattered ? padded(inputs, p, TensorId::q) : dense(inputs.q());
  Problem plain = p;
  std::int64_t fresh = p.call.key_length - p.call.past;
  if (p.call.page_size && !p.call.past_lengths.empty()) {
    // Pages say how many keys a sequence has; otherwise it has as many new ones as any.
    if (!plain.call.lengths) plain.call.lengths.emplace();
    plain.call.lengths->key.clear();
    for (std::int64_t b = 0; b < p.call.batch; ++b) {
      plain.call.lengths->key.push_back(p.call.key_count(b));
      fresh = std::max(fresh, p.call.key_count(b) - p.call.past_length(b));
    }
  }
  for (const auto& [cache, name] : {std::pair{Cache::keys, "k"}, {Cache::values, "v"}}) {
    const bool keys = cache == Cache::keys;
    file.tensors[name] =
        scattered ? dense_cached(inputs, p, cache, Rows::fresh, fresh) : dense(keys ? inputs.k() : inputs.v());
    if (p.call.past == 0) continue;
    file.tensors[std::string("past_") + name] = scattered ? dense_cached(inputs, p, cache, Rows::past, p.call.past)
                                                          : dense(keys ? inputs.past_k() : inputs.past_v());
  }
  if (!p.call.past_lengths.empty()) file.tensors["past_lengths"] = counts_tensor(p.call.past_lengths);
  if (inputs.mask()) {
    ConstTensor stored = *inputs.mask();
    stored.shape = stored_shape(p, TensorId::mask);  // its gradient has this shape
    file.tensors["mask"] = dense(stored);
  }
  for (const TensorId id : inputs_of(p)) {
    if (id == TensorId::dout || id == TensorId::dlse) {
      file.tensors[std::string(row_of(id).name)] = scattered ? padded(inputs, p, id) : dense(inputs.at(id));
      continue;  // what was saved follows from the other inputs, which are changed
    }
    if (is_of_operands(id)) {
      file.tensors[std::string(row_of(id).name)] = operand_tensor(inputs, p, id);
      continue;
    }
    if (!row_of(id).drawn) continue;
    ConstTensor stored = inputs.at(id);
    stored.shape = stored_shape(p, id);
    file.tensors[std::string(row_of(id).name)] = dense(stored);
  }
  if (p.call.dropout > 0 || inputs.keep()) file.tensors["keep"] = decisions(inputs, p);
  for (const char* name : {"mask", "keep"}) {
    if (file.tensors.contains(name)) add_keys(file.tensors.at(name), fresh - (p.call.key_length - p.call.past));
  }
  plain.call.layout = Layout::bhld;
  plain.call.page_size.reset();
  plain.call.latent = false;  // its values are a tensor here
  plain.call.scale.reset();
  plain.call.sink_values = list_numbers(inputs.sinks());  // a seed may have drawn them
  file.metadata["options"] = metadata_options(plain);
  file.metadata["scale"] = print_number(p.call.scale_value());
  return file;
}

ShrunkFile shrink_file(const TensorFile& failing, const std::function<bool(const Case&)>& fails,
                       const std::function<bool()>& go_on) {
  return FileShrinker(failing, fails, go_on).run();
}

}  // namespace attest
