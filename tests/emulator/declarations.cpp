#include "tests/emulator/declarations.h"

#include <functional>

#include "tests/emulator/accusations.h"

namespace attest::emulator {
namespace {

const std::vector<DType> kNarrow = {DType::f32, DType::f16, DType::bf16};

Sum random_sum(Random& random) {
  Sum sum;
  sum.format = random.pick(values_of<SumFormat>());
  if (sum.format == SumFormat::exact) sum.format = SumFormat::accumulator;  // of integers alone
  if (random.below(2) == 0) sum.promote = random.pick(std::vector<std::int64_t>{1, 4, 32, 128});
  if (random.below(2) == 0) sum.width = random.pick(std::vector<int>{2, 4, 16, 32});
  if (random.below(2) == 0) sum.bits = random.pick(std::vector<int>{8, 13, 23, 25});
  sum.directed = random.below(2) == 0;
  return sum;
}

const std::vector<OperandFormat> kFloating = {OperandFormat::tf32, OperandFormat::bf16, OperandFormat::f16,
                                              OperandFormat::e4m3, OperandFormat::e5m2};
/// Formats of 8 bits and fewer, which steps make use of, and products of two parts.
const std::vector<OperandFormat> kSmall = {OperandFormat::e4m3, OperandFormat::e5m2, OperandFormat::int8,
                                           OperandFormat::int4, OperandFormat::e2m1, OperandFormat::bf16x3};
struct Operand {
  OperandFormat Rounding::*format;
  OperandRounding Rounding::*rounding;
};
const Operand kRoundings[] = {{&Rounding::query_operand, &Rounding::query_rounding},
                              {&Rounding::key_operand, &Rounding::key_rounding},
                              {&Rounding::value_operand, &Rounding::value_rounding}};

void random_groups(Random& random, OperandRounding& own) {
  own.step = 0;
  own.rows = random.pick(std::vector<std::int64_t>{0, 1, 4, 32});
  own.power_of_two = random.below(4) == 0;
  if (random.below(4) == 0) own.slack = 0x1p-8;
}

/// Steps of a format that has few bits, or roundings to zero.
void random_rounding(Random& random, OperandFormat format, OperandRounding& own) {
  if (format == OperandFormat::exact) return;
  own.directed = random.below(4) == 0;
  if (format < OperandFormat::e4m3 || format == OperandFormat::bf16x3) return;
  if (random.below(4) == 0) {
    own.step = random.pick(std::vector<double>{0x1p-7, 0.03, 0.3, 4});
  } else {
    random_groups(random, own);
    own.columns = random.pick(std::vector<std::int64_t>{0, 0, 1, 4, 32});
  }
}

void random_weight_step(Random& random, Arithmetic& a) {
  a.weight_rounding.directed = a.weight_operand != OperandFormat::exact && random.below(4) == 0;
  if (!narrows_weights(a) || a.no_maximum || random.below(2) == 0) return;
  random_groups(random, a.weight_rounding);
}

const std::vector<double> kFactors = {1, 100, 256, 448};

}  // namespace

Arithmetic plain_arithmetic(DType dtype) {
  Arithmetic a;
  a.accumulator = a.stored_weights = a.stored_scores = accumulator_of(dtype);
  a.exp_ulps = a.log_ulps = a.tanh_ulps = 1;
  return a;
}

Emulated random_declaration(Random& random, DType dtype) {
  const auto one_in = [&](std::size_t n) { return random.below(n) == 0; };
  Emulated e;
  Arithmetic a = plain_arithmetic(dtype);
  if (one_in(4)) a.accumulator = a.stored_weights = a.stored_scores = DType::f64;
  a.exp_ulps = random.pick(std::vector<double>{0.5, 1, 1, 2, 3, 20, 739});
  a.log_ulps = random.pick(std::vector<double>{0.5, 1, 2, 4, 100});
  a.tanh_ulps = random.pick(std::vector<double>{0.5, 1, 2, 5, 100});
  a.base2 = one_in(3);
  if (one_in(3)) a.scale = a.base2 && one_in(2) ? ScalePlacement::folded_log2e : ScalePlacement::split_root;
  a.division = random.pick(values_of<Division>());
  if (one_in(2)) a.key_block = random.pick(std::vector<std::int64_t>{1, 3, 8, 16, 64});
  if (a.key_block > 0 && one_in(2)) a.lazy_threshold = random.pick(std::vector<double>{0.5, 2, 5.545, 8, 16, 40});
  a.normalised_before_storage = one_in(4);
  a.fused_log2e = !a.base2 && one_in(3);
  a.no_maximum = a.key_block == 0 && one_in(4);
  a.weights_from_lse = one_in(4);
  const DType weights = random.pick(kNarrow), scores = random.pick(kNarrow);
  if (one_in(2) && narrower(weights, a.accumulator)) a.stored_weights = weights;
  if (one_in(3) && narrower(scores, a.accumulator)) {
    a.stored_scores = scores;
    a.score_stores = 1 + static_cast<int>(random.below(4));
  }
  const bool weights_stored = narrower(a.stored_weights, a.accumulator);
  a.sum_of_stored = weights_stored && !a.normalised_before_storage && one_in(2);
  a.flush_to_zero = one_in(3);
  e.clamped_exp = a.flush_to_zero && one_in(2);
  a.kept_weights = one_in(4);
  a.delta_from_weights = one_in(3);
  const DType score_gradients = random.pick(kNarrow), head_gradients = random.pick(kNarrow);
  if (one_in(3) && narrower(score_gradients, a.accumulator)) a.stored_score_gradients = score_gradients;
  if (one_in(4) && narrower(head_gradients, a.accumulator)) a.stored_head_gradients = head_gradients;
  for (const auto operand : {&Arithmetic::query_operand, &Arithmetic::key_operand, &Arithmetic::value_operand,
                             &Arithmetic::weight_operand}) {
    const bool stored = operand == &Arithmetic::weight_operand && narrower(a.stored_weights, a.accumulator);
    const bool any = operand == &Arithmetic::weight_operand;
    if (stored || !one_in(8)) continue;
    a.*operand = any ? random.pick(values_of<OperandFormat>()) : random.pick(one_in(2) ? kSmall : kFloating);
  }
  // Integers that are exactly added, with steps and products of them behind the sum, as often as not.
  if (one_in(16)) {
    a.query_operand = a.key_operand = OperandFormat::int8;
    a.query_rounding.step = a.key_rounding.step = 0;
  }
  for (const auto& [operand, rounding] : kRoundings) random_rounding(random, a.*operand, a.*rounding);
  if (a.key_operand != OperandFormat::exact && one_in(3)) {
    a.key_rounding.mean_removed = true;
    a.key_rounding.mean_format = random.pick(kFloating);
  }
  if (a.weight_operand == OperandFormat::e2m1) a.lazy_threshold = 0;  // its largest number is 6
  if (a.weight_operand == OperandFormat::int4 || a.weight_operand == OperandFormat::e2m1 || one_in(3))
    random_weight_step(random, a);
  const bool dynamic = a.weight_rounding.step == 0;
  if (!dynamic && a.weight_operand != OperandFormat::exact && one_in(2)) a.weight_factor = random.pick(kFactors);
  if (!dynamic && a.weight_operand == OperandFormat::int8) a.weight_factor = 127;
  if (!dynamic && a.weight_operand == OperandFormat::u8) a.weight_factor = 255;
  if (!dynamic && a.weight_operand == OperandFormat::int4) a.weight_factor = 7;
  if (!dynamic && a.weight_operand == OperandFormat::e2m1) a.weight_factor = 6;
  a.sum_of_stored |= narrows_weights(a) && !a.normalised_before_storage && one_in(2);
  if (one_in(8)) a.exp_absolute = random.pick(std::vector<double>{1e-6, 1e-4, 1e-2});
  if (one_in(8)) a.exp_argument = random.pick(kFloating);
  if (one_in(8)) a.rescale_ulps = random.pick(std::vector<double>{0.5, 2, 300});
  for (const auto sum : {&Arithmetic::score_sum, &Arithmetic::value_sum, &Arithmetic::weight_sum}) {
    if (one_in(8)) a.*sum = random_sum(random);
  }
  if (one_in(8)) a.score_roundings = 1 + static_cast<int>(random.below(3));
  const auto integers = [](OperandFormat format) {
    return format == OperandFormat::int8 || format == OperandFormat::int4;
  };
  if (integers(a.query_operand) && integers(a.key_operand) && a.query_rounding.columns == 0 &&
      a.key_rounding.columns == 0 && one_in(2)) {
    a.score_sum = {.format = SumFormat::exact};
    a.score_roundings = 1 + static_cast<int>(random.below(3));
  }
  if (one_in(8)) a.output_roundings = 1 + static_cast<int>(random.below(2));
  e.does = e.says = a;
  e.behaviour = random.pick(values_of<Behaviour>());
  e.seed = random.below(std::size_t{1} << 40);
  return e;
}

std::vector<Statement> every_statement(DType dtype) {
  std::vector<Statement> list;
  const auto add = [&](const std::string& name, const std::function<void(Arithmetic&)>& change, bool clamped = false) {
    Emulated e;
    e.does = plain_arithmetic(dtype);
    change(e.does);
    e.says = e.does;
    e.clamped_exp = clamped;
    list.push_back({name, e});
  };
  add("plain", [](Arithmetic&) {});
  if (dtype != DType::f64) {
    add("accumulator=f64", [](Arithmetic& a) { a.accumulator = a.stored_weights = a.stored_scores = DType::f64; });
  }
  for (DType type : kNarrow) {
    if (!narrower(type, accumulator_of(dtype))) continue;
    const std::string name(name_of(type));
    add("stored_weights=" + name, [&](Arithmetic& a) { a.stored_weights = type; });
    add("stored_weights=" + name + " sum_of_stored", [&](Arithmetic& a) {
      a.stored_weights = type;
      a.sum_of_stored = true;
    });
    add("stored_weights=" + name + " normalised_before_storage", [&](Arithmetic& a) {
      a.stored_weights = type;
      a.normalised_before_storage = true;
    });
    add("stored_score_gradients=" + name, [&](Arithmetic& a) { a.stored_score_gradients = type; });
    add("stored_head_gradients=" + name, [&](Arithmetic& a) { a.stored_head_gradients = type; });
    for (int stores = 1; stores <= 4; ++stores) {
      add("stored_scores=" + name + " score_stores=" + std::to_string(stores), [&](Arithmetic& a) {
        a.stored_scores = type;
        a.score_stores = stores;
      });
    }
  }
  for (const OperandFormat format : {OperandFormat::tf32, OperandFormat::bf16, OperandFormat::f16}) {
    const std::string name(name_of(format));
    add("query_operand=" + name, [&](Arithmetic& a) { a.query_operand = format; });
    add("key_operand=" + name, [&](Arithmetic& a) { a.key_operand = format; });
    add("value_operand=" + name, [&](Arithmetic& a) { a.value_operand = format; });
    add("weight_operand=" + name, [&](Arithmetic& a) { a.weight_operand = format; });
    add("every operand " + name,
        [&](Arithmetic& a) { a.query_operand = a.key_operand = a.value_operand = a.weight_operand = format; });
  }
  for (const OperandFormat format : kSmall) {
    const std::string name(name_of(format));
    const bool steps = format != OperandFormat::bf16x3;
    add("q, k and v in " + name + (steps ? ", groups of 8 tokens" : ""), [&](Arithmetic& a) {
      for (const auto& [operand, rounding] : kRoundings) {
        a.*operand = format;
        if (steps) a.*rounding = {.step = 0, .rows = 8};
      }
    });
    add("q, k and v in " + name + ", directed", [&](Arithmetic& a) {
      for (const auto& [operand, rounding] : kRoundings) {
        a.*operand = format;
        if (steps) (a.*rounding).step = 0;
        (a.*rounding).directed = true;
      }
    });
  }
  add("q and k in int8, a step for 4 features, v for a column", [](Arithmetic& a) {
    a.query_operand = a.key_operand = a.value_operand = OperandFormat::int8;
    a.query_rounding = a.key_rounding = {.step = 0, .rows = 1, .columns = 4};
    a.value_rounding = {.step = 0, .columns = 1};
  });
  add("q, k and v in e4m3, powers of two for 4 features", [](Arithmetic& a) {
    for (const auto& [operand, rounding] : kRoundings) {
      a.*operand = OperandFormat::e4m3;
      a.*rounding = {.step = 0, .rows = 1, .columns = 4, .power_of_two = true};
    }
  });
  add("k less its mean in bf16",
      [](Arithmetic& a) { a.key_rounding = {.mean_removed = true, .mean_format = OperandFormat::bf16}; });
  add("weights in int8, steps of 8 keys", [](Arithmetic& a) {
    a.weight_operand = OperandFormat::int8;
    a.weight_rounding = {.step = 0, .rows = 8};
  });
  add("weights in e4m3, powers of two for 32 keys, sum_of_stored", [](Arithmetic& a) {
    a.weight_operand = OperandFormat::e4m3;
    a.weight_rounding = {.step = 0, .rows = 32, .power_of_two = true};
    a.sum_of_stored = true;
  });
  add("score_sum=f16", [](Arithmetic& a) { a.score_sum.format = SumFormat::f16; });
  add("value_sum=f16", [](Arithmetic& a) { a.value_sum.format = SumFormat::f16; });
  add("weight_sum=f16", [](Arithmetic& a) { a.weight_sum.format = SumFormat::f16; });
  const auto add_sums = [&](const std::string& name, const Sum& sum) {
    add("every sum " + name, [&](Arithmetic& a) {
      a.key_block = 16;
      a.score_sum = a.value_sum = a.weight_sum = sum;
    });
  };
  add_sums("bf16", {.format = SumFormat::bf16});
  add_sums("f16 promote 4", {.format = SumFormat::f16, .promote = 4});
  add_sums("13 bits, width 4, promote 8, directed", {.promote = 8, .width = 4, .bits = 13, .directed = true});
  add_sums("25 bits, width 16, directed", {.width = 16, .bits = 25, .directed = true});
  add("score_roundings=3", [](Arithmetic& a) { a.score_roundings = 3; });
  add("output_roundings=2", [](Arithmetic& a) { a.output_roundings = 2; });
  struct Narrow {
    OperandFormat format;
    double factor;
  };
  for (const Narrow& one : {Narrow{OperandFormat::e4m3, 256}, Narrow{OperandFormat::e5m2, 1},
                            Narrow{OperandFormat::int8, 127}, Narrow{OperandFormat::u8, 255}}) {
    const std::string name = "weight_operand=" + std::string(name_of(one.format));
    const auto narrow = [&](Arithmetic& a) {
      a.weight_operand = one.format;
      a.weight_factor = one.factor;
    };
    add(name, narrow);
    add(name + " sum_of_stored", [&](Arithmetic& a) {
      narrow(a);
      a.sum_of_stored = true;
    });
    add(name + " normalised_before_storage", [&](Arithmetic& a) {
      narrow(a);
      a.normalised_before_storage = true;
    });
    add(name + " key_block=8", [&](Arithmetic& a) {
      narrow(a);
      a.key_block = 8;
    });
  }
  add("exp_absolute", [](Arithmetic& a) { a.exp_absolute = 1e-3; });
  add("exp_absolute key_block=8", [](Arithmetic& a) {
    a.exp_absolute = 1e-3;
    a.key_block = 8;
  });
  add("exp_argument=f16", [](Arithmetic& a) { a.exp_argument = OperandFormat::f16; });
  add("exp_argument=bf16 key_block=8", [](Arithmetic& a) {
    a.exp_argument = OperandFormat::bf16;
    a.key_block = 8;
  });
  add("exp_ulps=739 rescale_ulps=1 key_block=8", [](Arithmetic& a) {
    a.exp_ulps = 739;
    a.rescale_ulps = 1;
    a.key_block = 8;
  });
  for (double ulps : {20.0, 739.0}) {
    const std::string text = std::to_string(static_cast<int>(ulps));
    add("exp_ulps=" + text, [&](Arithmetic& a) { a.exp_ulps = ulps; });
    add("log_ulps=" + text, [&](Arithmetic& a) { a.log_ulps = ulps; });
    add("tanh_ulps=" + text, [&](Arithmetic& a) { a.tanh_ulps = ulps; });
  }
  add("base2", [](Arithmetic& a) { a.base2 = true; });
  add("base2 scale=folded_log2e", [](Arithmetic& a) {
    a.base2 = true;
    a.scale = ScalePlacement::folded_log2e;
  });
  add("scale=split_root", [](Arithmetic& a) { a.scale = ScalePlacement::split_root; });
  for (Division division : {Division::reciprocal, Division::opencl_division, Division::opencl_reciprocal}) {
    add("division=" + std::string(name_of(division)), [&](Arithmetic& a) { a.division = division; });
  }
  for (std::int64_t block : {1, 8, 64}) {
    add("key_block=" + std::to_string(block), [&](Arithmetic& a) { a.key_block = block; });
  }
  for (double threshold : {2.0, 5.545}) {
    add("key_block=16 lazy_threshold=" + std::to_string(threshold), [&](Arithmetic& a) {
      a.key_block = 16;
      a.lazy_threshold = threshold;
    });
  }
  add("fused_log2e", [](Arithmetic& a) { a.fused_log2e = true; });
  add("fused_log2e key_block=8", [](Arithmetic& a) {
    a.fused_log2e = true;
    a.key_block = 8;
  });
  add("no_maximum", [](Arithmetic& a) { a.no_maximum = true; });
  add("weights_from_lse", [](Arithmetic& a) { a.weights_from_lse = true; });
  add("kept_weights", [](Arithmetic& a) { a.kept_weights = true; });
  add("delta_from_weights", [](Arithmetic& a) { a.delta_from_weights = true; });
  add("normalised_before_storage", [](Arithmetic& a) { a.normalised_before_storage = true; });
  add("flush_to_zero", [](Arithmetic& a) { a.flush_to_zero = true; });
  add(
      "flush_to_zero, exp clamped", [](Arithmetic& a) { a.flush_to_zero = true; }, true);
  return list;
}

}  // namespace attest::emulator
