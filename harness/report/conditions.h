// What verdicts depend on besides their cases: a run goes on only from verdicts that it would find itself.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace attest {

/// Values by name: the contents of the program and of its libraries, options, threads, ... Names that begin with
/// "backend." or "drivers" say something of what some runs have and others don't: they count where both have them.
using Conditions = std::map<std::string, std::string>;

/// A sentence on the first condition that differs; nullopt when verdicts under `earlier` hold under `now`.
std::optional<std::string> difference(const Conditions& earlier, const Conditions& now);

}  // namespace attest
