#include "harness/trace/language_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "harness/base/user_error.h"
#include "harness/cases/fill.h"
#include "harness/cases/inputs.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/verdict/plan_walk.h"
#include "reference/tensor_place.h"

namespace attest {
namespace {

constexpr std::int64_t kModel = 8, kHeads = 2, kHidden = 16;

/// Weights as a function of their name's number: uniform, with the variance that keeps activations near 1.
Matrix weights(std::uint64_t stream, std::int64_t rows, std::int64_t columns) {
  Matrix m{rows, columns, {}};
  const double width = std::sqrt(3.0 / static_cast<double>(rows));
  for (std::int64_t n = 0; n < rows * columns; ++n) {
    m.values.push_back((2 * hash_uniform(hash_words(11, stream, static_cast<std::uint64_t>(n))) - 1) * width);
  }
  return m;
}

void print_matrix(const std::string& title, const Matrix& m, const std::vector<std::string>& names) {
  fmt::print("\n{}  [{} x {}]\n", title, m.rows, m.columns);
  for (std::int64_t i = 0; i < m.rows; ++i) {
    fmt::print("  {:<8}", names[static_cast<std::size_t>(i)]);
    for (std::int64_t c = 0; c < m.columns; ++c) fmt::print(" {:>8.4f}", m.at(i, c));
    fmt::print("\n");
  }
}

struct Model {
  std::vector<std::string> words, vocabulary;
  std::vector<std::int64_t> ids;
  Matrix embeddings, positions, head;
  Block block;

  explicit Model(const LanguageModelSettings& settings) {
    std::istringstream text(settings.text);
    for (std::string word; text >> word;) words.push_back(word);
    if (words.size() < 2 || words.size() > 32) throw UserError("a text of 2 to 32 words is wanted");
    vocabulary = words;
    std::sort(vocabulary.begin(), vocabulary.end());
    vocabulary.erase(std::unique(vocabulary.begin(), vocabulary.end()), vocabulary.end());
    for (const std::string& word : words) {
      ids.push_back(std::lower_bound(vocabulary.begin(), vocabulary.end(), word) - vocabulary.begin());
    }
    const auto size = static_cast<std::int64_t>(vocabulary.size()), length = static_cast<std::int64_t>(words.size());
    embeddings = weights(1, size, kModel);
    positions = settings.sinusoidal ? sinusoidal_positions(length, kModel) : weights(2, length, kModel);
    block.self = {weights(3, kModel, kModel), weights(4, kModel, kModel), weights(5, kModel, kModel),
                  weights(6, kModel, kModel)};
    block.self_shape = {kHeads, kHeads, true};
    block.ffn = {weights(7, kModel, kHidden), weights(8, kHidden, kModel), {}, {}, settings.activation};
    block.pre_norm = settings.pre_norm;
    head = weights(9, kModel, size);
  }

  Matrix embedded() const {
    Matrix x{static_cast<std::int64_t>(ids.size()), kModel, {}};
    for (std::int64_t id : ids) {
      for (std::int64_t c = 0; c < kModel; ++c) x.values.push_back(embeddings.at(id, c));
    }
    return x;
  }

  Matrix logits(const Matrix& x) const { return project(block.pre_norm ? layer_norm(x, {}) : x, head); }

  /// Loss of each word but the last: the word after it is the target.
  std::vector<double> losses(const Matrix& all) const {
    Matrix rows = all;
    rows.rows -= 1;
    rows.values.resize(static_cast<std::size_t>(rows.rows * rows.columns));
    return cross_entropy(rows, {ids.begin() + 1, ids.end()});
  }
};

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

AttentionCore core_of(Backend& backend, DType dtype) {
  return [&backend, dtype](const Call& asked, const Inputs& inputs) {
    Call p = asked;
    p.dtype = dtype;
    if (const auto refusal = backend.refuse(p)) throw BackendError("refused: " + refusal->reason);
    // The projections are in float64; the core gets them in its own type.
    TensorStorage storages[3] = {TensorStorage(place_of(p, TensorId::q), dtype),
                                 TensorStorage(place_of(p, TensorId::k), dtype),
                                 TensorStorage(place_of(p, TensorId::v), dtype)};
    const ConstTensor* from[3] = {&inputs.q, &inputs.k, &inputs.v};
    for (int t = 0; t < 3; ++t) {
      const Index4 n = from[t]->shape;
      for (std::int64_t h = 0; h < n[1]; ++h) {
        for (std::int64_t l = 0; l < n[2]; ++l) {
          for (std::int64_t d = 0; d < n[3]; ++d) {
            storages[t].set(0, h, l, d, load(from[t]->data, from[t]->dtype, from[t]->offset(0, h, l, d)));
          }
        }
      }
    }
    Inputs own;
    own.q = storages[0].view();
    own.k = storages[1].view();
    own.v = storages[2].view();
    GuardedOutputs outputs(p);
    walk_once(backend, p, own, outputs);
    std::vector<double> out;
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t i = 0; i < p.query_length; ++i) {
        for (std::int64_t c = 0; c < p.value_dim; ++c) out.push_back(outputs.out(0, h, i, c));
      }
    }
    return out;
  };
}

void trace_language_model(const LanguageModelSettings& settings, Backend* backend) {
  const Model model(settings);
  fmt::print("tokens to loss: width {}, {} heads, {} hidden units, {}, {}, {} positions\n", kModel, kHeads, kHidden,
             settings.pre_norm ? "pre-norm" : "post-norm", settings.activation == Activation::gelu ? "GELU" : "ReLU",
             settings.sinusoidal ? "sinusoidal" : "learned");
  fmt::print("\ntokens   ");
  for (std::size_t n = 0; n < model.words.size(); ++n) fmt::print(" {}={}", model.words[n], model.ids[n]);
  fmt::print("\n");
  const Matrix x = add(model.embedded(), model.positions);
  print_matrix("embeddings", model.embedded(), model.words);
  print_matrix("positions", model.positions, model.words);
  print_matrix("x = embeddings + positions", x, model.words);
  const BlockStages stages = run_block(x, nullptr, model.block, reference_core);
  print_matrix("multi-head causal self-attention, heads concatenated and projected", stages.attended, model.words);
  print_matrix(settings.pre_norm ? "x + attention(norm(x))" : "norm(x + attention(x))", stages.after_attention,
               model.words);
  print_matrix("feed-forward", stages.fed, model.words);
  print_matrix("output of the block", stages.output, model.words);
  const Matrix logits = model.logits(stages.output);
  print_matrix("logits over the vocabulary", logits, model.words);

  const std::vector<double> losses = model.losses(logits);
  fmt::print("\nnext-token loss, -log p\n");
  for (std::size_t n = 0; n < losses.size(); ++n) {
    fmt::print("  after {:<8} {:<8} {:.6f}   p = {:.4f}\n", model.words[n], model.words[n + 1], losses[n],
               std::exp(-losses[n]));
  }
  const double loss = mean(losses);
  fmt::print("loss {:.9f}; guessing among {} words costs {:.6f}\n", loss, model.vocabulary.size(),
             std::log(static_cast<double>(model.vocabulary.size())));
  if (!backend) return;
  const BlockStages again = run_block(x, nullptr, model.block, core_of(*backend, DType::f32));
  const double other = mean(model.losses(model.logits(again.output)));
  fmt::print("loss {:.9f} with the attention of {} in f32, {:.1e} away\n", other, backend->identity().name,
             std::fabs(other - loss));
}

}  // namespace attest
