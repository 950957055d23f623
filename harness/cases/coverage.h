// What a set of cases covers: classes of sizes and option values (reference/options/feature.h), pairs of classes of
// different features, every option beside every class of lengths, and three at a time where a kernel's code meets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reference/options/options.h"

namespace attest {

/// One class of the table of options; its number is its place in classes_of_table().
struct TableClass {
  const Option* option;
  const Feature* feature;
  std::size_t which;  ///< within the feature
  const std::string& name() const { return feature->classes[which]; }
};

/// All of them, in the order of the table.
const std::vector<TableClass>& classes_of_table();

/// The number of a class; throws std::invalid_argument for a name that is none.
std::size_t class_named(std::string_view name);

/// Numbers of the classes that a problem is in, rising; at most one of each feature.
std::vector<std::size_t> classes_of(const Problem& problem);

/// The classes of one feature, rising.
std::vector<std::size_t> classes_of_feature(std::string_view feature);

using ClassPair = std::pair<std::size_t, std::size_t>;  ///< the first is the smaller one

/// What decides which keys a row takes in, or how linear attention's state is written: in code of its own in most
/// kernels.
struct Visibility {
  std::string name;
  std::vector<std::size_t> classes;  ///< it is there where a problem is in any of them
};
const std::vector<Visibility>& visibilities();

/// A storage type, a visibility and a class of lengths, met in one problem.
struct Triple {
  std::size_t type, visibility, length;  ///< class, place in visibilities(), class
};
std::vector<Triple> all_triples();

/// What a number of problems have met. One that leaves nothing to compute (no sequence, head, query or key) meets what
/// makes it empty, alone and beside its other classes, and nothing else.
class Coverage {
 public:
  Coverage();

  void meet(const Problem& problem);
  bool met(std::size_t one) const { return met(one, one); }
  bool met(std::size_t a, std::size_t b) const { return pairs_[a * size_ + b] != 0; }
  /// Whether the option was set where the class held.
  bool option_met(std::size_t option, std::size_t length_class) const {
    return options_[option * size_ + length_class] != 0;
  }
  bool met(const Triple& triple) const;
  /// Pairs that a problem would meet first. `classes` are its own.
  std::size_t count_new(const std::vector<std::size_t>& classes) const;

  std::size_t cases() const { return cases_; }

 private:
  static std::size_t place_of(const Triple& triple);

  std::size_t size_, cases_ = 0;
  std::vector<std::uint8_t> pairs_;    ///< by two classes, both ways round
  std::vector<std::uint8_t> options_;  ///< by option and class
  std::vector<std::uint8_t> triples_;  ///< by place_of
};

/// Pairs of different features, all of them.
std::vector<ClassPair> all_pairs();

/// Classes of the numbers of queries and of keys.
std::vector<std::size_t> length_classes();

/// Why no case can be in both classes, or none that a machine of these days runs in seconds; nullptr: nothing is known
/// against it. The rules and their reasons stand in impossible_pairs.cpp. a == b asks for the class alone.
const char* why_impossible(std::size_t a, std::size_t b);
/// The same for an option that is set beside a class.
const char* why_impossible_option(const Option& option, std::size_t one);
/// And for three.
const char* why_impossible(const Triple& triple);

}  // namespace attest
