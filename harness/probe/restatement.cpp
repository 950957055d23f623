#include "harness/probe/restatement.h"

#include <fmt/format.h>

#include <utility>

#include "reference/rounding.h"

namespace attest::probes {

std::vector<Restatement> restatements(const Arithmetic& a) {
  std::vector<Restatement> list;
  const auto held = [&](DType type) { return narrower(type, a.accumulator) ? type : a.accumulator; };
  const auto say = [&](std::string_view field, std::string stated, std::string other,
                       std::function<void(Arithmetic&)> make, bool of_weights = false) {
    if (stated != other) list.push_back({field, std::move(stated), std::move(other), std::move(make), of_weights});
  };
  const auto name = [](DType type) { return std::string(name_of(type)); };
  for (DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    if (type == DType::f64 || type == DType::f32) {
      say("accumulator", name(a.accumulator), name(type), [type](Arithmetic& to) { to.accumulator = type; });
    }
    if (narrower(a.accumulator, type)) continue;
    say(
        "stored weights", name(held(a.stored_weights)), name(type),
        [type](Arithmetic& to) { to.stored_weights = type; }, true);
  }
  const auto divided = [](bool before) { return std::string(before ? "before P*V" : "after P*V"); };
  say(
      "divided", divided(a.normalised_before_storage), divided(!a.normalised_before_storage),
      [](Arithmetic& to) { to.normalised_before_storage = !to.normalised_before_storage; }, true);
  const auto added = [](bool stored) { return std::string(stored ? "as stored" : "as computed"); };
  say(
      "row sum", added(a.sum_of_stored), added(!a.sum_of_stored),
      [](Arithmetic& to) { to.sum_of_stored = !to.sum_of_stored; }, true);
  const auto stores = [](DType type, int count) {
    return count == 0 ? std::string("nowhere") : fmt::format("{}, {} times", name_of(type), count);
  };
  const int count = narrower(a.stored_scores, a.accumulator) ? a.score_stores : 0;
  say(
      "stored scores", stores(a.stored_scores, count), stores(a.stored_scores, 0),
      [](Arithmetic& to) { to.score_stores = 0; }, true);
  for (DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (int n = 1; narrower(type, a.accumulator) && n <= 4; ++n) {
      say(
          "stored scores", stores(a.stored_scores, count), stores(type, n),
          [type, n](Arithmetic& to) {
            to.stored_scores = type;
            to.score_stores = n;
          },
          true);
    }
  }
  const auto base = [](bool two) { return std::string(two ? "2" : "e"); };
  say("base", base(a.base2), base(!a.base2), [](Arithmetic& to) { to.base2 = !to.base2; });
  for (ScalePlacement place : values_of<ScalePlacement>()) {
    say("scale", std::string(name_of(a.scale)), std::string(name_of(place)),
        [place](Arithmetic& to) { to.scale = place; });
  }
  const auto exponent = [](bool fused) {
    return std::string(fused ? "exp2 of a fused product" : "exp of a difference");
  };
  say("exponent", exponent(a.fused_log2e), exponent(!a.fused_log2e),
      [](Arithmetic& to) { to.fused_log2e = !to.fused_log2e; });
  say("division", std::string(name_of(a.division)), std::string(name_of(Division::reciprocal)),
      [](Arithmetic& to) { to.division = Division::reciprocal; });
  return list;
}

bool fault_in(const Arithmetic& a) {
  const bool weights_stored = narrower(a.stored_weights, a.accumulator);
  return (a.sum_of_stored && (!weights_stored || a.normalised_before_storage)) || (a.base2 && a.fused_log2e) ||
         (a.scale == ScalePlacement::folded_log2e && !a.base2);
}

}  // namespace attest::probes
