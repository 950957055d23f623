// Answers to a bundle, which came back from anywhere, held against its bounds.
#pragma once

#include <filesystem>

#include "harness/run/bundle.h"
#include "harness/verdict/verdict.h"

namespace attest {

/// Judges `answers`/FILE, which holds each result of the case under its name: with the bundle's shape, in its type or a
/// wider floating one. What the case's own file says decides; nothing is computed again. A file that is no tensor file
/// or lacks a result is a failure, and what one is that is not there says `missing`. Throws UserError where the
/// bundle's own file is at fault.
Verdict verify(const std::filesystem::path& folder, const BundleCase& one, const std::filesystem::path& answers,
               Status missing = Status::fail);

}  // namespace attest
