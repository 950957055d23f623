// Built with the same target flags as the backends, so that it uses the widest vectors they may use.
#include "harness/speed/machine/roof.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "harness/base/interrupted.h"
#include "harness/base/raw_clock.h"
#include "reference/base/view.h"

namespace attest {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kChains = 20;  ///< of 32 registers; enough to hide 4 cycles on 2 units
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
constexpr int kChains = 12;  ///< of 16 registers
#else
constexpr int kVectorBytes = 16;
constexpr int kChains = 12;
#endif

constexpr double kNever = 1e300;  ///< seconds, or numbers in one, that nothing reaches

/// Independent chains of fused multiply-adds that stay in registers. Returns a value that keeps them alive.
template <class Real>
double fma_chains(std::int64_t steps) {
  typedef Real Vector __attribute__((vector_size(kVectorBytes)));
  Vector chain[kChains];
  for (int n = 0; n < kChains; ++n) chain[n] = Vector{} + static_cast<Real>(n);
  Vector factor = Vector{} + static_cast<Real>(0.999), term = Vector{} + static_cast<Real>(0.001);
  for (std::int64_t step = 0; step < steps; ++step) {
    // Opaque to the optimiser: no step can be folded into the next.
    __asm__ volatile("" : "+x"(factor), "+x"(term));
#pragma GCC unroll 20
    for (int n = 0; n < kChains; ++n) chain[n] = chain[n] * factor + term;
  }
  double sum = 0;
  for (auto& c : chain) sum += static_cast<double>(c[0]);
  return sum;
}

/// Runs `work` on all threads together, `rounds` times, or until one takes at most `enough` seconds. The best round's
/// seconds, from the first start to the last end: each thread reads the clock itself, so that waking a waiting one
/// costs nothing.
double best_seconds(int threads, int rounds, const std::function<void(int)>& work, double enough = 0) {
  struct Stamp {
    double start, end;
  };
  double best = kNever;
  for (int round = 0; round < rounds && best > enough && (round == 0 || !interrupted); ++round) {
    std::vector<Stamp> stamps(static_cast<std::size_t>(threads));
    std::barrier gate(threads);
    {
      std::vector<std::jthread> pool;
      for (int t = 0; t < threads; ++t) {
        pool.emplace_back([&, t] {
          gate.arrive_and_wait();
          Stamp& stamp = stamps[static_cast<std::size_t>(t)];
          stamp.start = steady_seconds();
          work(t);
          stamp.end = steady_seconds();
        });
      }
    }
    const auto first = std::min_element(stamps.begin(), stamps.end(), [](const Stamp& a, const Stamp& b) {
                         return a.start < b.start;
                       })->start;
    const auto last = std::max_element(stamps.begin(), stamps.end(), [](const Stamp& a, const Stamp& b) {
                        return a.end < b.end;
                      })->end;
    best = std::min(best, last - first);
  }
  return best;
}

/// GFLOP/s; ends as soon as it reaches `enough`.
template <class Real>
double measure_fma(int threads, double enough = kNever) {
  constexpr std::int64_t kSteps = 1 << 20;
  const double gflops = 2e-9 * kChains * (kVectorBytes / static_cast<double>(sizeof(Real))) * kSteps * threads;
  std::vector<double> sink(static_cast<std::size_t>(threads) * 16);
  const auto work = [&](int t) { sink[static_cast<std::size_t>(t) * 16] = fma_chains<Real>(kSteps); };
  return gflops / best_seconds(threads, 25, work, gflops / enough);
}

double measure_read(int threads) {
  constexpr std::size_t kBytes = std::size_t{128} << 20;
  const std::vector<std::uint64_t> data(kBytes / 8, 1);
  std::vector<std::uint64_t> sink(static_cast<std::size_t>(threads) * 16);
  const std::size_t share = data.size() / static_cast<std::size_t>(threads);
  const double seconds = best_seconds(threads, 5, [&](int t) {
    const std::uint64_t* from = data.data() + share * static_cast<std::size_t>(t);
    std::uint64_t sums[16] = {};
    for (std::size_t n = 0; n + 16 <= share; n += 16) {
      for (std::size_t lane = 0; lane < 16; ++lane) sums[lane] += from[n + lane];
    }
    for (std::uint64_t sum : sums) sink[static_cast<std::size_t>(t) * 16] += sum;
  });
  return static_cast<double>(share * 8) * threads / seconds / 1e9;
}

/// What an upload may take: bytes into fresh memory, whose pages the system has to find first.
double measure_copy() {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  const std::vector<char> from(kBytes, 1);
  double fastest = kNever;  // neighbours would make room for work that is none of copying
  for (int round = 0; round < 5; ++round) {
    const double start = steady_seconds();
    const std::vector<char> to(from);  // NOLINT(performance-unnecessary-copy-initialization): it is what is timed
    fastest = std::min(fastest, steady_seconds() - start + 1e-12 * to.back());
  }
  return static_cast<double>(kBytes) / fastest / 1e9;
}

/// What moving data may take where it has to become another type.
double measure_convert() {
  constexpr std::int64_t kElements = 1 << 18;
  const std::vector<std::uint16_t> from(kElements, 0x3c00);
  std::vector<float> to(kElements);
  double fastest = kNever;
  for (int round = 0; round < 5; ++round) {
    const double start = steady_seconds();
    for (std::int64_t n = 0; n < kElements; ++n) store(to.data(), DType::f32, n, load(from.data(), DType::f16, n));
    fastest = std::min(fastest, steady_seconds() - start);
  }
  return static_cast<double>(2 * kElements) / fastest / 1e9;
}

/// More threads than processors take turns and reach nothing that these can't.
int at_once(int threads) {
  return std::clamp(threads, 1, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
}

}  // namespace

Roof measure_roof(int wanted) {
  const int threads = at_once(wanted);
  // Neighbours on a shared machine slow it down for a tenth of a second at a time: rounds far apart find the peak.
  constexpr int kRounds = 8;
  constexpr std::chrono::milliseconds kBetween{60};
  Roof roof;
  for (int round = 0; round < kRounds && (round == 0 || !interrupted); ++round) {
    if (round > 0) std::this_thread::sleep_for(kBetween);
    roof.fma_gflops_f32 = std::max(roof.fma_gflops_f32, measure_fma<float>(threads));
    roof.fma_gflops_f64 = std::max(roof.fma_gflops_f64, measure_fma<double>(threads));
  }
  roof.read_gbps = measure_read(threads);
  roof.copy_gbps = measure_copy();
  roof.convert_gbps = measure_convert();
  return roof;
}

double measure_fma_again(int wanted, bool doubles, double known) {
  const double enough = known > 0 ? 0.99 * known : kNever;
  const int threads = at_once(wanted);
  return doubles ? measure_fma<double>(threads, enough) : measure_fma<float>(threads, enough);
}

}  // namespace attest
