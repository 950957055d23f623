// Installed as a source, and compiled into every program that links attest::harness: tells it where suites, golden
// files and lists lie. attestConfig.cmake knows the folder, wherever the installation has been moved to.
#include "harness/base/installation.h"

namespace {

[[maybe_unused]] const bool told = (attest::installed_data() = ATTEST_INSTALLED_DATA, true);

}  // namespace
