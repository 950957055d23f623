# Deliberate mistakes of distributed attention, after bugs that shipped elsewhere: the numbers below 100 are those of
# tests/BUG_CLASSES.md.
#
# attest_fault(NUMBER FILE RIGHT WRONG), once or more for a number: in a copy of the file the expression WRONG stands for RIGHT, which is there
# exactly once, when the program runs with ATTEST_FAULT=NUMBER. killed.txt beside this names the line that catches each.
function(attest_fault number file right wrong)
  set(copy ${CMAKE_CURRENT_BINARY_DIR}/faulty_distributed/${file})
  file(READ ${PROJECT_SOURCE_DIR}/${file} original)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
  string(REPLACE "${right}" "" without "${original}")
  string(LENGTH "${original}" length)
  string(LENGTH "${without}" rest)
  string(LENGTH "${right}" once)
  math(EXPR times "(${length} - ${rest}) / ${once}")
  if(NOT times EQUAL 1)
    message(FATAL_ERROR "fault ${number}: '${right}' is ${times} times in ${file}, and not once")
  endif()
  get_property(copied GLOBAL PROPERTY ATTEST_FAULTY_FILES)
  if(file IN_LIST copied)
    file(READ ${copy} text)
  else()
    set(text "#include \"tests/mpi/faulty/fault.h\"\n${original}")
    set_property(GLOBAL APPEND PROPERTY ATTEST_FAULTY_FILES ${file})
  endif()
  string(REPLACE "${right}" "(attest::fault(${number}) ? (${wrong}) : (${right}))" text "${text}")
  file(CONFIGURE OUTPUT ${copy} CONTENT "${text}" @ONLY)
endfunction()

# Lengths that the ranks don't divide lose their last keys.
attest_fault(54 backends/ring/scheme.cpp
  "spans_of_part(call.key_length, rank, ranks, order_of(scheme))"
  "spans_of_part(call.key_length / ranks * ranks, rank, ranks, order_of(scheme))")
# A window that shows no limit to the left is taken for one that shows nothing of other ranks' keys.
attest_fault(55 backends/ring/part_attention.h
  "tiles_.attend(tile, keys, kNothing, worker)"
  "call_.window_right == Call::kUnbounded && tiles_.attend(tile, keys, kNothing, worker)")
# A part of which a row sees nothing is merged like any other: -inf minus -inf.
attest_fault(56 backends/ring/part_attention.h "part_lse == kNothing" "false")
attest_fault(56 backends/support/parts/row_merge.h "lse == -kInfinite" "false")
# The largest logsumexp is not taken out of the exponentials.
attest_fault(57 backends/support/parts/row_merge.h "lse > largest_" "(largest_ = 0) > 0")
# Results of parts wait in 16 bits.
attest_fault(58 backends/ring/part_attention.h
  "worker.kernel.finish(r, row.data(), &row_lse)"
  "static_cast<void>((worker.kernel.finish(r, row.data(), &row_lse), std::for_each(row.begin(), row.end(), [](Real& x) { x = static_cast<Real>(bf16_to_float(to_bf16(static_cast<double>(x)))); })))")
# Boundaries of documents hold within a rank's own queries and keys only.
attest_fault(59 backends/support/visibility.h "!segments_.empty()" "!segments_.empty() && held_.key == held_.query")
# Query heads take a rank's key heads by turns.
attest_fault(60 backends/ring/part_attention.h
  "h / in_group"
  "part.groups.first + (h - heads.first) % (part.groups.last - part.groups.first)")
# Pieces from either end are there for causal masks alone.
attest_fault(62 backends/ring/part_attention.h
  "length_of(part.keys)"
  "part.keys.size() > 1 && !call_.causal ? throw BackendError(\"two pieces without a causal mask\") : length_of(part.keys)")
# The mask of keys that come from another rank is forgotten.
attest_fault(63 backends/ring/part_attention.h
  "keys.first < slice.keys.first"
  "keys.first > 0 || keys.first < slice.keys.first")
# A rank above 0 crashes in the midst of its computing, in whichever thread; and throws there.
attest_fault(101 backends/ring/part_attention.h
  "task % all"
  "local_.rank() == 1 ? std::raise(SIGSEGV), task % all : task % all")
attest_fault(102 backends/ring/part_attention.h
  "tiles - 1 - task / all"
  "local_.rank() == 1 ? throw BackendError(\"told to throw\") : tiles - 1 - task / all")
