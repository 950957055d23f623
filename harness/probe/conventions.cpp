#include <cmath>
#include <iterator>

#include "harness/probe/probe.h"
#include "harness/probe/probe_problem.h"
#include "harness/relate/promise.h"
#include "harness/verdict/stated_conventions.h"

namespace attest {
namespace {

double identity(std::int64_t row, std::int64_t column) { return row == column ? 1 : 0; }

std::string align(Backend& backend) {
  // Row 0 of 2 against 5 keys sees 1 key from the top left corner, 4 from the bottom right.
  const auto seen = [&](const char* corner) {
    Probe probe("seq=2x5 dim=4/5 causal align=" + std::string(corner));
    probe.set_v(identity);
    probe.run(backend);
    return probe.keys_seen(0);
  };
  const std::int64_t top = seen("top-left"), bottom = seen("bottom-right");
  if (top == 1 && bottom == 4) return "as asked";
  if (top == 1 && bottom == 1) return "top-left";
  if (top == 4 && bottom == 4) return "bottom-right";
  return "neither corner";
}

std::string window(Backend& backend) {
  Probe probe("seq=9 dim=4/9 window=2:0");
  probe.set_v(identity);
  probe.run(backend);
  const std::int64_t seen = probe.keys_seen(5);
  return seen == 3 ? "W + 1 keys" : seen == 2 ? "W keys" : std::to_string(seen) + " keys for W = 2";
}

std::string mask_true(Backend& backend) {
  Probe probe("seq=8 dim=4/8 mask=bool:11QK:random(0.5)");
  probe.set_v(identity);
  probe.run(backend);
  int kept = 0, dropped = 0;
  for (std::int64_t i = 0; i < 8; ++i) {
    for (std::int64_t j = 0; j < 8; ++j) ((probe.out(i, j) != 0) == probe.mask_at(i, j) ? kept : dropped) += 1;
  }
  return dropped == 0 ? "keep" : kept == 0 ? "drop" : "neither";
}

std::string class_of(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value == 0 ? "0" : "a number";
}

std::string empty_row(Backend& backend) {
  Probe probe("seq=4 dim=4 mask=bool:11QK:none");
  probe.set_v([](std::int64_t, std::int64_t) { return 2.0; });
  probe.run(backend);
  return probe.out(0, 0) == 2 ? "mean of v" : class_of(probe.out(0, 0));
}

std::string lse_of_empty_row(Backend& backend) {
  Probe probe("seq=4 dim=4 mask=bool:11QK:none out=o,lse");
  probe.run(backend);
  return class_of(probe.lse(0));
}

/// How far NaN in the last key, which all rows but the last hide, gets: to all rows, or to those that see a key of its
/// group. A kernel that leaks by tiles looks like one that shares steps; it may state either.
std::string group_of_nan(Backend& backend, std::int64_t stated) {
  const std::int64_t keys = (256 / stated + 2) * stated;  // the last group is full, and not the only one
  Probe probe(fmt::format("seq={} dim=4 causal", keys));
  const auto last_is_nan = [keys](std::int64_t l, std::int64_t) { return l == keys - 1 ? kNaN : 0.5; };
  probe.set_k(last_is_nan);
  probe.set_v(last_is_nan);
  probe.run(backend);
  std::int64_t first = 0;
  while (first < keys && std::isfinite(probe.out(first, 0))) ++first;
  if (first + 1 >= keys) return "stays out";
  return first == 0 ? "leaks" : fmt::format("shares steps of {} keys", keys - first);
}

std::string hidden_nan(Backend& backend) {
  const std::string stated = backend.conventions().hidden_nan;
  if (const auto keys = keys_of_shared_step(stated)) return group_of_nan(backend, *keys);
  Probe probe("seq=7x40 dim=4 causal align=top-left poison=hidden:kv");
  probe.run(backend);
  for (std::int64_t i = 0; i < 7; ++i) {
    for (std::int64_t c = 0; c < 4; ++c) {
      if (!std::isfinite(probe.out(i, c))) return "leaks";
    }
  }
  return "stays out";
}

std::string lse_base(Backend& backend) {
  // Eight equal scores of 0: the sum is 8.
  Probe probe("seq=8 dim=4 out=o,lse");
  probe.set_q(zero);
  probe.run(backend);
  if (std::fabs(probe.lse(0) - std::log(8.0)) < 1e-3) return "e";
  return std::fabs(probe.lse(0) - 3) < 1e-3 ? "2" : "neither";
}

std::string softcap(Backend& backend) {
  // Scores of 0: with the cap first the bias stays as it is, with the cap last none exceeds it.
  Probe probe("seq=1x2 dim=4/2 mask=add:111K:normal softcap=0.001");
  probe.set_q(zero);
  probe.set_v(identity);
  probe.run(backend);
  return std::fabs(std::log(probe.out(0, 0) / probe.out(0, 1))) > 0.01 ? "before bias" : "after bias";
}

std::string softmax_f64(Backend& backend) {
  Probe probe("dtype=f64 seq=1x3 dim=1/3 scale=1");
  probe.set_q([](std::int64_t, std::int64_t) { return 1; });
  probe.set_k([](std::int64_t l, std::int64_t) { return 0.1 * static_cast<double>(l); });
  probe.set_v(identity);
  probe.run(backend);
  const double exact = 1 / (1 + std::exp(0.1) + std::exp(0.2));
  return std::fabs(probe.out(0, 0) - exact) < 1e-12 ? "f64" : "f32";
}

std::string accumulation_f32(Backend& backend) {
  // 2^24 + 1 + 1 + ... - 2^24: the ones are lost in f32, whatever the order of a few lanes, and kept in f64.
  Probe probe("seq=1 dim=258 scale=1 out=o,lse");
  probe.set_q([](std::int64_t, std::int64_t) { return 1; });
  probe.set_k([](std::int64_t, std::int64_t d) { return d == 0 ? 0x1p26 : d == 257 ? -0x1p26 : 1.0; });
  probe.run(backend);
  return probe.lse(0) == 256 ? "f64" : "f32";
}

/// What of its promise it keeps in a few cases; `attest relate` tries more.
std::string same_bits(Backend& backend) { return kept_promise(backend); }

struct ConventionProbe {
  std::string Conventions::*field;
  std::string (*ask)(Backend&);
};

constexpr ConventionProbe kConventionProbes[] = {
    {&Conventions::align, align},
    {&Conventions::window, window},
    {&Conventions::mask_true, mask_true},
    {&Conventions::empty_row, empty_row},
    {&Conventions::hidden_nan, hidden_nan},
    {&Conventions::lse_base, lse_base},
    {&Conventions::lse_of_empty_row, lse_of_empty_row},
    {&Conventions::softcap, softcap},
    {&Conventions::softmax_f64, softmax_f64},
    {&Conventions::accumulation_f32, accumulation_f32},
    {&Conventions::same_bits, same_bits},
};

/// nullptr for a field without a probe.
constexpr const ConventionProbe* probe_of(std::string Conventions::*field) {
  for (const ConventionProbe& probe : kConventionProbes) {
    if (probe.field == field) return &probe;
  }
  return nullptr;
}

constexpr bool every_field_has_a_probe() {
  for (const ConventionField& field : kConventionFields) {
    if (!probe_of(field.value)) return false;
  }
  return std::size(kConventionProbes) == kConventionFields.size();
}
static_assert(every_field_has_a_probe(), "a convention that nobody probes can be stated at will");

}  // namespace

std::vector<ProbedStatement> probe_conventions(Backend& backend) {
  std::vector<ProbedStatement> findings;
  const Conventions conventions = backend.conventions();
  for (const auto& [name, value] : kConventionFields) {
    const std::string& stated = conventions.*value;
    const std::string observed = observe([&, field = value] { return probe_of(field)->ask(backend); });
    // What is refused is not done otherwise than stated.
    const bool refused = observed == "refused" && stated != observed;
    findings.push_back({std::string(name), stated, observed, refused || stated == observed, refused});
  }
  return findings;
}

}  // namespace attest
