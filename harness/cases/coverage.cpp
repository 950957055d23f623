#include "harness/cases/coverage.h"

#include <algorithm>
#include <stdexcept>

namespace attest {

const std::vector<TableClass>& classes_of_table() {
  static const std::vector<TableClass> table = [] {
    std::vector<TableClass> list;
    for (const Option& option : options()) {
      for (const Feature& feature : option.features) {
        for (std::size_t n = 0; n < feature.classes.size(); ++n) list.push_back({&option, &feature, n});
      }
    }
    return list;
  }();
  return table;
}

std::size_t class_named(std::string_view name) {
  const auto& table = classes_of_table();
  const auto found = std::find_if(table.begin(), table.end(), [&](const TableClass& c) { return c.name() == name; });
  if (found == table.end()) throw std::invalid_argument("no class is named " + std::string(name));
  return static_cast<std::size_t>(found - table.begin());
}

std::vector<std::size_t> classes_of(const Problem& problem) {
  std::vector<std::size_t> list;
  std::size_t first = 0;
  for (const Option& option : options()) {
    for (const Feature& feature : option.features) {
      if (const auto which = feature.class_of(problem)) list.push_back(first + *which);
      first += feature.classes.size();
    }
  }
  return list;
}

namespace {

/// The classes that leave nothing to compute.
const std::vector<std::uint8_t>& empty_classes() {
  static const std::vector<std::uint8_t> flags = [] {
    std::vector<std::uint8_t> list(classes_of_table().size(), 0);
    for (const char* name : {"batch=0", "query heads=0", "key heads=0", "queries=0", "keys=0"})
      list[class_named(name)] = 1;
    return list;
  }();
  return flags;
}

/// Whether a problem in `classes` shows what happens in two of them: one without anything to compute shows that alone.
class Shown {
 public:
  explicit Shown(const std::vector<std::size_t>& classes) : empty_(empty_classes()) {
    for (std::size_t c : classes) nothing_ = nothing_ || empty_[c] != 0;
  }
  bool operator()(std::size_t a) const { return (*this)(a, a); }
  bool operator()(std::size_t a, std::size_t b) const { return !nothing_ || empty_[a] != 0 || empty_[b] != 0; }

 private:
  const std::vector<std::uint8_t>& empty_;
  bool nothing_ = false;
};

}  // namespace

const std::vector<Visibility>& visibilities() {
  static const std::vector<Visibility> list = [] {
    std::vector<Visibility> made;
    for (const char* feature : {"causal", "window left", "window right", "prefix", "lengths", "segments", "mask",
                                "blocks", "past", "paged", "op"}) {
      const bool one_by_one = feature == std::string_view("mask") || feature == std::string_view("op");
      const auto& table = classes_of_table();
      for (std::size_t n = 0; n < table.size(); ++n) {
        if (table[n].feature->name != feature || table[n].name() == "op=attention") continue;
        if (made.empty() || one_by_one || made.back().name != feature)
          made.push_back({one_by_one ? table[n].name() : feature, {}});
        made.back().classes.push_back(n);
      }
    }
    return made;
  }();
  return list;
}

std::vector<Triple> all_triples() {
  std::vector<Triple> list;
  for (std::size_t type = 0; type < classes_of_table().size(); ++type) {
    if (classes_of_table()[type].feature->name != "dtype") continue;
    for (std::size_t v = 0; v < visibilities().size(); ++v) {
      for (std::size_t length : length_classes()) list.push_back({type, v, length});
    }
  }
  return list;
}

Coverage::Coverage()
    : size_(classes_of_table().size()),
      pairs_(size_ * size_, 0),
      options_(options().size() * size_, 0),
      triples_(size_ * visibilities().size() * size_, 0) {}

bool Coverage::met(const Triple& triple) const {
  return triples_[(triple.type * visibilities().size() + triple.visibility) * size_ + triple.length] != 0;
}

void Coverage::meet(const Problem& problem) {
  ++cases_;
  const std::vector<std::size_t> classes = classes_of(problem);
  const Shown shows(classes);
  for (std::size_t a : classes) {
    for (std::size_t b : classes) {
      if (shows(a, b)) pairs_[a * size_ + b] = 1;
    }
  }
  const std::span<const Option> rows = options();
  for (std::size_t n = 0; n < rows.size(); ++n) {
    if (!rows[n].is_set(problem)) continue;
    for (std::size_t c : classes) {
      if (shows(c)) options_[n * size_ + c] = 1;
    }
  }
  const std::vector<Visibility>& kinds = visibilities();
  for (std::size_t v = 0; v < kinds.size(); ++v) {
    const bool there = std::any_of(kinds[v].classes.begin(), kinds[v].classes.end(), [&](std::size_t one) {
      return std::find(classes.begin(), classes.end(), one) != classes.end();
    });
    if (!there) continue;
    for (std::size_t type : classes) {
      if (classes_of_table()[type].feature->name != "dtype") continue;
      for (std::size_t c : classes) {
        if (shows(c)) triples_[(type * kinds.size() + v) * size_ + c] = 1;
      }
    }
  }
}

std::size_t Coverage::count_new(const std::vector<std::size_t>& classes) const {
  std::size_t fresh = 0;
  const Shown shows(classes);
  for (std::size_t n = 0; n < classes.size(); ++n) {
    for (std::size_t m = n; m < classes.size(); ++m) {
      fresh += shows(classes[n], classes[m]) && !met(classes[n], classes[m]);
    }
  }
  return fresh;
}

std::vector<ClassPair> all_pairs() {
  const auto& table = classes_of_table();
  std::vector<ClassPair> pairs;
  for (std::size_t a = 0; a < table.size(); ++a) {
    for (std::size_t b = a + 1; b < table.size(); ++b) {
      if (table[a].feature != table[b].feature) pairs.emplace_back(a, b);
    }
  }
  return pairs;
}

std::vector<std::size_t> length_classes() {
  const auto& table = classes_of_table();
  std::vector<std::size_t> list;
  for (std::size_t n = 0; n < table.size(); ++n) {
    if (table[n].feature->name == "queries" || table[n].feature->name == "keys") list.push_back(n);
  }
  return list;
}

}  // namespace attest
