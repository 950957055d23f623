// Installed as a source, and compiled into every program that links attest::harness: tells it where suites, golden
// files and lists lie. harness/attestConfig.cmake.in knows the folder, wherever the installation has been moved to. In
// a project that builds attest as a part of itself, it is the build's.
#include "harness/base/installation.h"

// What CMake makes every program ask its linker for: in a static library of others, this file would otherwise be left
// out, since nobody calls it. Weak, because a program and an object library that it takes in each have one.
extern "C" [[gnu::weak]] bool attest_installed_data;
bool attest_installed_data = (attest::installed_data() = ATTEST_INSTALLED_DATA, true);
