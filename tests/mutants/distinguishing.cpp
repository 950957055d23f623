#include "tests/mutants/distinguishing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "harness/base/output_file.h"
#include "harness/base/parallel.h"
#include "harness/base/user_error.h"
#include "harness/cases/class_cases.h"
#include "harness/cases/random_case.h"
#include "harness/cases/suites.h"
#include "reference/options/case_line.h"
#include "tests/mutants/conditional.h"

namespace attest::mutants {
namespace {

/// What a case may cost: most need not be larger than the first; the second is that of a mutant's witness.
constexpr std::array<CaseLimits, 2> kLimits = {{{3e5, 4.0 * (1 << 20)}, {2e7, 64.0 * (1 << 20)}}};
constexpr int kTries = 3;            ///< within each of them
constexpr int kMoreClasses = 40;     ///< tried beside those that a case is made for
constexpr std::size_t kAtOnce = 16;  ///< cases that are looked for at a time; the same for any number of threads

using MistakeSet = std::uint64_t;  ///< a bit for each

/// Mistakes that change no element of any result in a class, whatever else is set.
struct NeverShown {
  std::string_view one;                    ///< class
  std::vector<std::string_view> mistakes;  ///< none: all of them
};
const std::vector<NeverShown>& never_shown() {
  static const std::vector<std::string_view> of_values = {"last_feature_zero", "row_of_the_run_before"};
  static const std::vector<std::string_view> of_keys = {"last_key_dropped", "last_feature_zero",
                                                        "row_of_the_run_before"};
  static const std::vector<NeverShown> list = {
      {"batch=0", {}},
      {"query heads=0", {}},
      {"key heads=0", {}},
      {"queries=0", {}},
      {"keys=0", of_keys},
      {"blocks=none", of_keys},
      {"boolean mask=none", of_keys},
      {"out without o", of_values},
      {"op=linear", {"last_key_dropped"}},
      {"op=gated", {"last_key_dropped"}},
      {"op=delta", {"last_key_dropped"}},
      {"op=gated_delta", {"last_key_dropped"}},
  };
  return list;
}

/// Which mistakes show on some case in two classes.
class Shown {
 public:
  explicit Shown(const Mistakes& mistakes)
      : size_(classes_of_table().size()), shown_(size_ * size_, 0), candidates_(size_ * size_, 0) {
    const std::vector<std::string> names = mistakes.names();
    for (std::size_t a = 0; a < size_; ++a) {
      for (std::size_t b = 0; b < size_; ++b) {
        const auto matter = mistakes.candidates({{class_condition(a), class_condition(b)}});
        for (std::size_t n = 0; n < names.size(); ++n) {
          if (std::find(matter.begin(), matter.end(), names[n]) != matter.end())
            candidates_[a * size_ + b] |= MistakeSet{1} << n;
        }
      }
    }
    for (const NeverShown& never : never_shown()) {
      MistakeSet out = never.mistakes.empty() ? ~MistakeSet{0} : 0;
      for (std::size_t n = 0; n < names.size(); ++n) {
        if (std::find(never.mistakes.begin(), never.mistakes.end(), names[n]) != never.mistakes.end())
          out |= MistakeSet{1} << n;
      }
      const std::size_t one = class_named(never.one);
      for (std::size_t other = 0; other < size_; ++other) {
        candidates_[one * size_ + other] &= ~out;
        candidates_[other * size_ + one] &= ~out;
      }
    }
  }

  /// Those that may matter in both classes and show on no case so far.
  MistakeSet missing(std::size_t a, std::size_t b) const { return candidates_[a * size_ + b] & ~shown_[a * size_ + b]; }
  MistakeSet missing_in(const std::vector<std::size_t>& classes) const {
    MistakeSet open = 0;
    for (std::size_t a : classes) {
      for (std::size_t b : classes) open |= missing(a, b);
    }
    return open;
  }
  void add(const std::vector<std::size_t>& classes, MistakeSet mistakes) {
    for (std::size_t a : classes) {
      for (std::size_t b : classes) shown_[a * size_ + b] |= mistakes;
    }
  }

 private:
  std::size_t size_;
  std::vector<MistakeSet> shown_, candidates_;
};

/// Those of `asked` that show on the case.
MistakeSet shown_by(Mistakes& mistakes, const Case& source, MistakeSet asked) {
  const std::vector<std::string> names = mistakes.names();
  std::set<std::string> wanted;
  for (std::size_t n = 0; n < names.size(); ++n) {
    if ((asked >> n & 1) != 0) wanted.insert(names[n]);
  }
  if (wanted.empty()) return 0;
  const std::set<std::string> caught = mistakes.caught(wanted, source);
  MistakeSet shown = 0;
  for (std::size_t n = 0; n < names.size(); ++n) {
    if (caught.contains(names[n])) shown |= MistakeSet{1} << n;
  }
  return shown;
}

Case as_case(const Problem& p) { return case_from_line(print_case(p)); }

/// What cases showed in earlier runs, a line each: the mistakes as a number, a tab, the case.
class KnownCases {
 public:
  explicit KnownCases(const std::string& path) : path_(path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      MistakeSet shown = 0;
      const char* end = line.data() + line.size();
      const auto [tab, error] = std::from_chars(line.data(), end, shown, 16);
      if (error != std::errc() || tab == end || *tab != '\t')
        throw UserError(path + ": not what an earlier --known wrote: " + line);
      cases_[std::string(tab + 1, end)] = shown;
    }
    if (!path.empty()) out_.open(path, std::ios::app);
  }
  std::optional<MistakeSet> find(const Case& one) const {
    const auto at = cases_.find(one.label);
    return at == cases_.end() ? std::nullopt : std::optional(at->second);
  }
  void add(const Case& one, MistakeSet shown) {
    if (path_.empty()) return;
    out_ << fmt::format("{:x}\t{}\n", shown, one.label) << std::flush;
    if (!out_) throw OutputError(path_ + " could not be written");
  }

 private:
  std::string path_;
  std::map<std::string, MistakeSet> cases_;
  std::ofstream out_;
};

/// Two classes, or one twice, and what a case in them shall show.
struct Target {
  std::size_t a = 0, b = 0;
  MistakeSet given_up = 0;
};

class Search {
 public:
  Search(const std::string& known, std::uint64_t seed)
      : workers_(kAtOnce), shown_(workers_[0]), known_(known), seed_(seed) {}

  /// What a suite shows; cases side by side, for their order changes nothing.
  void look_at(const std::vector<Case>& cases) {
    std::mutex guard;
    parallel_in_workers(cases.size(), [&](std::size_t n, Mistakes& mistakes) {
      const std::vector<std::size_t> classes = classes_of(cases[n].problem);
      std::unique_lock lock(guard);
      std::optional<MistakeSet> shown = known_.find(cases[n]);
      if (!shown) {
        const MistakeSet open = shown_.missing_in(classes);
        lock.unlock();
        shown = shown_by(mistakes, cases[n], open);
        lock.lock();
        known_.add(cases[n], *shown);
      }
      shown_.add(classes, *shown);
    });
  }

  MistakeSet missing(const Target& t) const {
    return why_impossible(t.a, t.b) ? 0 : shown_.missing(t.a, t.b) & ~t.given_up;
  }

  /// In how many targets each mistake is missing.
  std::map<std::string, std::size_t> missing_of_each(const std::vector<Target>& targets) const {
    const std::vector<std::string> names = workers_[0].names();
    std::map<std::string, std::size_t> counts;
    for (const Target& t : targets) {
      const MistakeSet open = missing(t);
      for (std::size_t n = 0; n < names.size(); ++n) counts[names[n]] += open >> n & 1;
    }
    return counts;
  }

  /// Prints cases until every target is met or given up. Returns how many.
  std::size_t run(std::vector<Target>& targets) {
    std::size_t lines = 0;
    for (bool any = true; any;) {
      any = false;
      for (std::size_t next = 0; next < targets.size();) {
        std::vector<Target*> batch;
        for (; next < targets.size() && batch.size() < kAtOnce; ++next) {
          if (missing(targets[next]) != 0) batch.push_back(&targets[next]);
        }
        any |= !batch.empty();
        lines += take(batch);
      }
    }
    return lines;
  }

 private:
  struct Found {
    Case made;
    MistakeSet shown = 0;
  };

  template <class Work>
  void parallel_in_workers(std::size_t count, const Work& work) {
    const std::size_t threads = std::min<std::size_t>(std::max(1u, std::thread::hardware_concurrency()), kAtOnce);
    std::atomic<std::size_t> next{0};
    parallel_for(threads, static_cast<int>(threads), [&](std::size_t thread) {
      for (std::size_t n = next++; n < count; n = next++) work(n, workers_[thread]);
    });
  }

  std::size_t take(const std::vector<Target*>& batch) {
    std::vector<std::optional<Found>> found(batch.size());
    ++rounds_;
    parallel_in_workers(batch.size(), [&](std::size_t n, Mistakes& mistakes) {
      Random random(seed_ + 1000003 * rounds_ + 7919 * n);
      found[n] = find(*batch[n], mistakes, random);
    });
    std::size_t lines = 0;
    for (std::size_t n = 0; n < batch.size(); ++n) {
      const MistakeSet wanted = missing(*batch[n]);
      if (!found[n]) {
        batch[n]->given_up |= wanted;
        continue;
      }
      if ((wanted & found[n]->shown) == 0) continue;  // an earlier one shows it, too
      std::printf("%s\n", found[n]->made.label.c_str());
      std::fflush(stdout);
      known_.add(found[n]->made, found[n]->shown);
      shown_.add(classes_of(found[n]->made.problem), found[n]->shown);
      ++lines;
    }
    return lines;
  }

  std::optional<Found> find(const Target& target, Mistakes& mistakes, Random& random) const {
    const std::vector<std::size_t> classes =
        target.a == target.b ? std::vector{target.a} : std::vector{target.a, target.b};
    for (const CaseLimits& limits : kLimits) {
      for (int n = 0; n < kTries; ++n) {
        std::optional<Problem> p = case_in(classes, limits, random, 8);
        if (!p) continue;
        const MistakeSet shown = shown_by(mistakes, as_case(*p), missing(target));
        if (shown == 0) continue;
        widen(*p, classes, shown, limits, mistakes, random);
        const Case made = as_case(*p);
        return Found{made, shown_by(mistakes, made, shown_.missing_in(classes_of(made.problem)))};
      }
    }
    return std::nullopt;
  }

  /// Moves the case into more classes in which the mistakes are missing, as long as they still show.
  void widen(Problem& p, std::vector<std::size_t> kept, MistakeSet wanted, const CaseLimits& limits, Mistakes& mistakes,
             Random& random) const {
    const CaseLimits beside = {std::min(limits.multiply_adds, std::max(1e5, 1.5 * random_case_cost(p))), limits.bytes};
    for (int n = 0; n < kMoreClasses; ++n) {
      const std::vector<std::size_t> now = classes_of(p);
      std::size_t chosen = 0;
      int most = 0;
      for (int draw = 0; draw < 10; ++draw) {
        const std::size_t c = random.below(classes_of_table().size());
        int gain = 0;
        for (std::size_t x : now) gain += std::popcount(shown_.missing(c, x) & wanted);
        if (gain > most && std::find(now.begin(), now.end(), c) == now.end()) {
          most = gain;
          chosen = c;
        }
      }
      if (most == 0) continue;
      const std::optional<Problem> next = moved_into(p, chosen, kept, beside, random);
      if (!next || (shown_by(mistakes, as_case(*next), wanted) & wanted) != wanted) continue;
      p = *next;
      kept.push_back(chosen);
    }
  }

  std::vector<Mistakes> workers_;
  Shown shown_;
  KnownCases known_;
  std::uint64_t seed_, rounds_ = 0;
};

}  // namespace

void print_distinguishing(bool pairs, const std::vector<std::string>& suites, std::uint64_t seed,
                          const std::string& known) {
  Search search(known, seed);
  for (const std::string& suite : suites) {
    search.look_at(load_suite(find_suite(suite)));
    fmt::print(stderr, "{}: what its cases show is known\n", suite);
  }
  std::vector<Target> targets;
  for (std::size_t n = 0; n < classes_of_table().size(); ++n) targets.push_back({n, n, 0});
  if (pairs) {
    for (const auto& [a, b] : all_pairs()) targets.push_back({a, b, 0});
  }
  const auto count = [&](const auto& of) {
    std::size_t sum = 0;
    for (const Target& t : targets) sum += static_cast<std::size_t>(std::popcount(of(t)));
    return sum;
  };
  fmt::print(stderr, "{} classes or pairs, {} mistakes in them that no case of the suites shows\n", targets.size(),
             count([&](const Target& t) { return search.missing(t); }));
  for (const auto& [name, missing] : search.missing_of_each(targets)) fmt::print(stderr, "  {} of {}\n", missing, name);
  const std::size_t lines = search.run(targets);
  fmt::print(stderr, "{} cases, {} mistakes that no case of {} tries shows\n", lines,
             count([](const Target& t) { return t.given_up; }), kTries * kLimits.size());
}

}  // namespace attest::mutants
