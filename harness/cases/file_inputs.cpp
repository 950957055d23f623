#include "harness/cases/file_inputs.h"

#include <fmt/format.h>

#include <optional>

#include "harness/cases/case_source.h"
#include "harness/cases/index_tensors.h"
#include "harness/cases/operand_tensors.h"
#include "reference/call/tensor_place.h"
#include "reference/call/tensor_table.h"

namespace attest {
namespace {

/// Whether it is an input of a backward pass that query rows number.
bool is_of_loss_rows(TensorId id) { return is_of_gradients(id) && row_of(id).axes[1] == Axis::query_heads; }

std::vector<std::int64_t> without_ones(std::vector<std::int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

template <class Wanted>
std::vector<TensorId> inputs_that(const Problem& problem, const Wanted& wanted) {
  std::vector<TensorId> list = inputs_of(problem);
  std::erase_if(list, [&](TensorId id) { return !wanted(id); });
  return list;
}

/// Those that are nothing but numbers.
std::vector<TensorId> drawn_inputs(const Problem& problem) {
  return inputs_that(problem, [](TensorId id) {
    return row_of(id).drawn && !is_of_loss_rows(id) && !is_of_operands(id) && !is_scales(id);
  });
}

class InputReader : CaseSource {
 public:
  InputReader(const TensorFile& file, const std::string& name, const FileProblem& asked)
      : CaseSource(file, name), problem_(asked.problem), layout_(asked.layout), pages_(asked.pages) {}

  CaseInputs read() const {
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
    for (const TensorId id : drawn_inputs(problem_)) read_drawn(id, inputs);
    if (problem_.call.select) read_indices(inputs);
    for (const TensorId id : inputs_that(problem_, is_of_operands))
      read_operand_tensor(file_, name_, problem_, id, inputs);
    read_code_scales(file_, name_, problem_, page_table_ ? std::optional(pages_) : std::nullopt, inputs);
    read_keep(inputs);
    if (problem_.call.mask) read_mask(inputs);
    for (const TensorId id : loss_inputs(problem_)) {
      const bool is_saved = has_place_for_each(id);
      if (!is_saved || find(std::string(name_of(id)))) read_gradient_input(id, inputs);
    }
    if (has_tensor(problem_, TensorId::saved_o)) save_forward(problem_, inputs, 1, true);
    return inputs;
  }

 private:
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

  const Problem& problem_;
  const Layout layout_;
  const std::int64_t pages_;
};

}  // namespace

std::vector<TensorId> loss_inputs(const Problem& problem) { return inputs_that(problem, is_of_loss_rows); }

CaseInputs read_file_inputs(const TensorFile& file, const std::string& name, const FileProblem& asked) {
  return InputReader(file, name, asked).read();
}

}  // namespace attest
