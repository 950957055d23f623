# Tests, each in a tier. ./scripts/test.sh runs the quick tier, ./scripts/test.sh --all all of them.

# attest_test(NAME TIER COST COMMAND WORD... [LABELS LABEL...] [NEEDS TARGET...] [ENVIRONMENT VARIABLE=VALUE...] [SERIAL]
#   [BOTH_CORES] [SKIPS] [TIMEOUT SECONDS])
#
# TIER is `quick`, what a commit must not break; `all`, what runs in parts and at night; or `share`, a small form of a test
# of `all`, which runs in the quick tier alone. COST is the time in seconds of one core that the test took once; parts
# are made equal by it and long tests begin first. NEEDS are targets that are built before the test when nothing has
# built them; what a large one costs says attest_build_cost. A test that SKIPS may end with 77, where the machine lacks
# what it is about.
function(attest_test name tier cost)
  cmake_parse_arguments(arg "SERIAL;BOTH_CORES;SKIPS" "TIMEOUT" "COMMAND;LABELS;NEEDS;ENVIRONMENT" ${ARGN})
  if(NOT tier MATCHES "^(quick|all|share)$")
    message(FATAL_ERROR "test ${name}: there is no tier ${tier}")
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS "${tier};${arg_LABELS}" COST ${cost} ENVIRONMENT "${arg_ENVIRONMENT}")
  foreach(target IN LISTS arg_NEEDS)
    if(NOT TEST build.${target})
      add_test(NAME build.${target} COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target ${target})
      set_tests_properties(build.${target} PROPERTIES FIXTURES_SETUP ${target} PROCESSORS 2 RESOURCE_LOCK ninja
        LABELS build COST 1000)
    endif()
  endforeach()
  set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED "${arg_NEEDS}")
  if(arg_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
  if(arg_BOTH_CORES)
    set_tests_properties(${name} PROPERTIES PROCESSORS 2)
  endif()
  if(arg_SKIPS)
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  if(arg_TIMEOUT)
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY ATTEST_TIERS "${tier} ${cost} ${name} ${arg_NEEDS}\n")
endfunction()

# attest_build_cost(TARGET COST): the seconds of one core that TARGET takes to build, beside what the quick tier builds.
# Tests that need it come into one part where that keeps the parts equal.
function(attest_build_cost target cost)
  set_property(GLOBAL APPEND_STRING PROPERTY ATTEST_TIERS "build ${cost} ${target}\n")
endfunction()

# Writes tiers.txt, which scripts/test.sh reads: a line for each test with its tier, its cost, its name and the targets
# that it needs, and one for each costly target.
function(attest_write_tiers)
  get_property(tiers GLOBAL PROPERTY ATTEST_TIERS)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/tiers.txt CONTENT "${tiers}" @ONLY)
endfunction()
