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

std::vector<std::size_t> classes_of_feature(std::string_view feature) {
  std::vector<std::size_t> list;
  for (std::size_t n = 0; n < classes_of_table().size(); ++n) {
    if (classes_of_table()[n].feature->name == feature) list.push_back(n);
  }
  return list;
}

const std::vector<Visibility>& visibilities() {
  static const std::vector<Visibility> list = [] {
    std::vector<Visibility> made;
    const auto add = [&](const char* feature) { made.push_back({feature, classes_of_feature(feature)}); };
    // Kinds of masks and rules of linear attention have code of their own.
    const auto add_each = [&](const char* feature) {
      for (std::size_t one : classes_of_feature(feature)) {
        const std::string& name = classes_of_table()[one].name();
        if (name != "op=attention") made.push_back({name, {one}});
      }
    };
    for (const char* feature : {"causal", "window left", "window right", "prefix", "lengths", "segments"}) add(feature);
    add_each("mask");
    for (const char* feature : {"blocks", "past", "paged"}) add(feature);
    add_each("op");
    return made;
  }();
  return list;
}

namespace {

const std::vector<std::size_t>& types() {
  static const std::vector<std::size_t> list = classes_of_feature("dtype");
  return list;
}

}  // namespace

std::vector<Triple> all_triples() {
  std::vector<Triple> list;
  for (std::size_t type : types()) {
    for (std::size_t v = 0; v < visibilities().size(); ++v) {
      for (std::size_t length : length_classes()) list.push_back({type, v, length});
    }
  }
  return list;
}

std::size_t Coverage::place_of(const Triple& t) {
  return ((t.type - types().front()) * visibilities().size() + t.visibility) * classes_of_table().size() + t.length;
}

Coverage::Coverage()
    : size_(classes_of_table().size()),
      pairs_(size_ * size_, 0),
      options_(options().size() * size_, 0),
      triples_(types().size() * visibilities().size() * size_, 0) {}

bool Coverage::met(const Triple& triple) const { return triples_[place_of(triple)] != 0; }

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
  const auto is_in = [&](std::size_t one) { return std::binary_search(classes.begin(), classes.end(), one); };
  const auto type = std::find_if(types().begin(), types().end(), is_in);
  for (std::size_t v = 0; v < visibilities().size(); ++v) {
    const std::vector<std::size_t>& any = visibilities()[v].classes;
    if (std::none_of(any.begin(), any.end(), is_in)) continue;
    for (std::size_t c : classes) {
      if (shows(c)) triples_[place_of({*type, v, c})] = 1;
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
  std::vector<std::size_t> list = classes_of_feature("queries");
  const std::vector<std::size_t> keys = classes_of_feature("keys");
  list.insert(list.end(), keys.begin(), keys.end());
  return list;
}

}  // namespace attest
