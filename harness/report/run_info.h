// What is known of a run before its first verdict: what runs, on what, and which cases are asked for.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "backends/identity.h"
#include "harness/base/machine.h"
#include "harness/base/unavailable.h"
#include "harness/report/conditions.h"

namespace attest {

/// Which program found verdicts, and where.
struct Origin {
  std::string attest{}, commit{};  ///< version and commit
  Machine machine{};
};

/// What was asked for, the parts of all shards together. Parts of the same selection can be put together.
struct CaseSelection {
  std::string fingerprint;                      ///< of the cases in their order and of the filter; "" where unknown
  std::size_t cases = 0;                        ///< Verdict::number counts up to here
  std::map<std::string, std::size_t> verdicts;  ///< by backend: as many as all parts have when none is missing
  std::string shard;                            ///< "2/3"; "" is all of it
};

/// One of the files that were put together.
struct RunPart {
  std::string file;  ///< its name, without its folder
  std::string shard;
  Origin origin;
  std::size_t verdicts = 0;
  double seconds = 0;
};

struct RunInfo {
  std::vector<std::string> command;
  Conditions conditions;
  std::vector<Identity> backends;
  std::vector<Unavailable> unavailable;
  std::size_t cases = 0;     ///< of this part of the selection
  std::size_t verdicts = 0;  ///< as many as an uninterrupted run has
  CaseSelection selection;
  Origin origin{};             ///< without a version: this program, on this machine
  std::vector<RunPart> parts;  ///< where it was put together
};

}  // namespace attest
