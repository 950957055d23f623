// The identity of a backend: its library with the version, and its device. Every result shows it.
#pragma once

#include <string>

namespace attest {

struct Identity {
  std::string name, library, device;
  std::string plugin{};      ///< the shared library that it comes from, as the user named it; the host's to fill in
  std::string parameters{};  ///< "key_tile=256 query_tile=96": those that aren't standard; the host's to fill in
};

/// "library on device", and behind it the parameters that aren't standard.
inline std::string description(const Identity& identity) {
  const std::string& chosen = identity.parameters;
  return identity.library + " on " + identity.device + (chosen.empty() ? "" : ", " + chosen);
}

}  // namespace attest
