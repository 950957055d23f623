// The parts of the module, each of which adds its functions.
#pragma once

#include <nanobind/nanobind.h>

namespace attest {

void define_checking(nanobind::module_& module);
void define_searching(nanobind::module_& module);
void define_relating(nanobind::module_& module);
void define_timing(nanobind::module_& module);
void define_expected(nanobind::module_& module);
void define_program(nanobind::module_& module);

}  // namespace attest
