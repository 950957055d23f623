#include "harness/trace/language_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backends/refusal.h"
#include "harness/base/statistics.h"
#include "harness/base/user_error.h"
#include "harness/cases/inputs.h"
#include "harness/comparison/guarded_outputs.h"
#include "harness/trace/drawn_projections.h"
#include "harness/verdict/plan_walk.h"
#include "reference/tensor_place.h"

namespace attest {
namespace {

constexpr std::int64_t kModel = 8, kHeads = 2, kHidden = 32;

struct Model {
  std::vector<std::string> words, vocabulary;
  std::vector<std::int64_t> ids;
  Matrix embeddings, positions, head;
  std::vector<Block> blocks;

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
    embeddings = drawn_matrix(1, size, kModel);
    positions = settings.sinusoidal ? sinusoidal_positions(length, kModel) : drawn_matrix(2, length, kModel);
    for (int n = 0; n < settings.blocks; ++n) blocks.push_back(drawn_block(static_cast<std::uint64_t>(n), settings));
    head = drawn_matrix(9, kModel, size);
  }

  static Block drawn_block(std::uint64_t number, const LanguageModelSettings& settings) {
    const std::uint64_t first = number == 0 ? 3 : 10 * number;
    Block block;
    block.self = {drawn_matrix(first, kModel, kModel), drawn_matrix(first + 1, kModel, kModel),
                  drawn_matrix(first + 2, kModel, kModel), drawn_matrix(first + 3, kModel, kModel)};
    block.self_shape = {kHeads, kHeads, true};
    block.ffn = {drawn_matrix(first + 4, kModel, kHidden),
                 drawn_matrix(first + 5, kHidden, kModel),
                 {},
                 {},
                 settings.activation};
    block.pre_norm = settings.pre_norm;
    return block;
  }

  Matrix embedded() const {
    Matrix x{static_cast<std::int64_t>(ids.size()), kModel, {}};
    for (std::int64_t id : ids) {
      for (std::int64_t c = 0; c < kModel; ++c) x.values.push_back(embeddings.at(id, c));
    }
    return x;
  }

  Matrix logits(const Matrix& x) const { return project(blocks.front().pre_norm ? layer_norm(x, {}) : x, head); }

  /// Loss of each word but the last: the word after it is the target.
  std::vector<double> losses(const Matrix& all) const {
    Matrix rows = all;
    rows.rows -= 1;
    rows.values.resize(static_cast<std::size_t>(rows.rows * rows.columns));
    return cross_entropy(rows, {ids.begin() + 1, ids.end()});
  }
};

}  // namespace

AttentionCore core_of(Backend& backend, DType dtype) {
  return [&backend, dtype](const Call& asked, const Inputs& inputs) {
    Call p = asked;
    p.dtype = dtype;
    if (const auto refusal = refusal_of(backend, p)) throw BackendError("refused: " + refusal->reason);
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

LanguageModelTrace trace_language_model(const LanguageModelSettings& settings, Backend* backend) {
  const Model model(settings);
  LanguageModelTrace trace;
  const auto stage = [&](const std::string& name, const std::string& title, const Matrix& m) -> Stage& {
    return trace.stages.emplace_back(stage_of(name, title, m, model.words));
  };
  trace.summary = fmt::format(
      "tokens to loss: width {}, {} heads, {} hidden units ({} times the width), {} block{}, {}, {}, {} positions",
      kModel, kHeads, kHidden, kHidden / kModel, settings.blocks, settings.blocks > 1 ? "s" : "",
      settings.pre_norm ? "pre-norm" : "post-norm", settings.activation == Activation::gelu ? "GELU" : "ReLU",
      settings.sinusoidal ? "sinusoidal" : "learned");
  Stage ids{"tokens", "tokens: number of each word in the sorted vocabulary", model.words, {}, {}, true};
  for (std::int64_t id : model.ids) ids.values.push_back({static_cast<double>(id)});
  trace.stages.push_back(std::move(ids));
  stage("embeddings", "embeddings", model.embedded());
  stage("positions",
        settings.sinusoidal ? fmt::format("positions: sin and cos of position / 10000^(2t/{})", kModel)
                            : "positions, learned",
        model.positions);
  Matrix x = add(model.embedded(), model.positions);
  stage("x", "x = embeddings + positions", x);
  for (std::size_t n = 0; n < model.blocks.size(); ++n) {
    const std::string key = fmt::format("block_{}_", n + 1), of = fmt::format("block {}: ", n + 1);
    const BlockStages stages = run_block(x, nullptr, model.blocks[n], reference_core);
    stage(key + "attention", of + "multi-head causal self-attention, heads concatenated and projected",
          stages.attended);
    stage(key + "after_attention", of + (settings.pre_norm ? "x + attention(norm(x))" : "norm(x + attention(x))"),
          stages.after_attention);
    stage(key + "feed_forward", of + "feed-forward", stages.fed);
    stage(key + "output", of + "its output", stages.output);
    x = stages.output;
  }
  const Matrix logits = model.logits(x);
  stage("logits", "logits over the vocabulary", logits).columns = model.vocabulary;

  const std::vector<double> losses = model.losses(logits);
  Stage next{"losses", "next-token loss, -log p of the word that follows", {}, {"loss", "p"}, {}};
  for (std::size_t n = 0; n < losses.size(); ++n) {
    next.rows.push_back(model.words[n] + " -> " + model.words[n + 1]);
    next.values.push_back({losses[n], std::exp(-losses[n])});
    trace.loss_sum += losses[n];
  }
  trace.stages.push_back(std::move(next));
  trace.loss_mean = mean(losses);
  trace.guessing = std::log(static_cast<double>(model.vocabulary.size()));
  if (!backend) return trace;
  Matrix again = add(model.embedded(), model.positions);
  for (const Block& block : model.blocks)
    again = run_block(again, nullptr, block, core_of(*backend, DType::f32)).output;
  trace.backend = {std::string(backend->identity().name), mean(model.losses(model.logits(again)))};
  return trace;
}

void print_language_model(const LanguageModelTrace& trace, int digits) {
  fmt::print("{}\n", trace.summary);
  for (const Stage& stage : trace.stages) print_stage(stage, digits);
  fmt::print("\nloss: sum {:.9f}, mean {:.9f}; guessing costs {:.9f} on average\n", trace.loss_sum, trace.loss_mean,
             trace.guessing);
  if (!trace.backend) return;
  fmt::print("loss: mean {:.9f} with the attention of {} in f32, {:.1e} away\n", trace.backend->loss_mean,
             trace.backend->name, std::fabs(trace.backend->loss_mean - trace.loss_mean));
}

std::string language_model_json(const LanguageModelTrace& trace) {
  nlohmann::ordered_json json;
  json["summary"] = trace.summary;
  for (const Stage& stage : trace.stages) json["stages"][stage.name] = stage_json(stage);
  json["loss"] = {{"sum", trace.loss_sum}, {"mean", trace.loss_mean}, {"guessing", trace.guessing}};
  if (trace.backend) json["backend"] = {{"name", trace.backend->name}, {"mean", trace.backend->loss_mean}};
  return json.dump(1) + "\n";
}

}  // namespace attest
