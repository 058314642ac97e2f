# SPDX-License-Identifier: Apache-2.0
# A program that only includes xla.hpp pays for no function of the run time: none is instantiated.
# g++ lists the functions that it has made in a dump, clang in a trace. And for no more text than is allowed.

cmake_minimum_required(VERSION 3.24)

file(STRINGS "${FLAGS_FILE}" flags)
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
file(WRITE "${WORK}/include.cpp" "#include <xla/xla.hpp>\nint main() {}\n")
if(ID STREQUAL "GNU")
  set(listing -fdump-tree-original=${WORK}/made)
  set(start "^[^(]* ")
else()
  set(listing -ftime-trace -ftime-trace-granularity=0)
  set(start "^")
endif()
execute_process(COMMAND "${COMPILER}" ${flags} -O1 ${listing} -c include.cpp -o include.o
  WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
if(ID STREQUAL "GNU")
  file(STRINGS "${WORK}/made" made REGEX "^;; Function .*\\[with ")
else()
  file(READ "${WORK}/include.json" trace)
  string(REGEX MATCHALL "\"InstantiateFunction\",\"args\":{\"detail\":\"[^\"]*\"" made "${trace}")
endif()
list(LENGTH made count)
if(count LESS 50)
  message(FATAL_ERROR "the compiler has listed ${count} functions: too few to be all of them")
endif()
set(run_time "basic_(pool|tracer|executor|executable|specializer|metric|segment_recorder)|machine")
set(kernels "kernel_of|single_map|map_kernel|row_kernel")
foreach(function IN LISTS made)
  string(REGEX REPLACE " \\[with .*|\"InstantiateFunction.*:\"" "" name "${function}")
  if(name MATCHES "world_size\"?$")  # which reads a number
    continue()
  endif()
  if(name MATCHES "${start}xla::[a-z_:]*(${run_time}|${kernels})<[^(]*>::")
    message(FATAL_ERROR "including xla.hpp instantiates ${name}: something in a header that is no "
                        "template, or does not depend on its parameters, calls it; see base/dependent.hpp")
  endif()
endforeach()
message(STATUS "${count} functions, none of the run time")

# Whatever xla.hpp includes, every source of every program reads: as text without the places that it comes from, which
# has the same size in each folder. With instructions beyond the processor's family Eigen brings all intrinsics.
# 4735 KB with g++ 12 when the limit was set.
set(most 4745)
execute_process(COMMAND "${COMPILER}" ${flags} -E -P -MD -MF include.d include.cpp -o include.ii
  WORKING_DIRECTORY "${WORK}" COMMAND_ERROR_IS_FATAL ANY)
file(SIZE "${WORK}/include.ii" size)
file(READ "${WORK}/include.d" headers)
math(EXPR kilobytes "(${size} + 999) / 1000")
message(STATUS "${kilobytes} KB of text, ${most} are allowed")
if(size LESS 1000000)
  message(FATAL_ERROR "${size} bytes are too few to be all that xla.hpp includes")
elseif(flags MATCHES "(^|;)-m")
  message(STATUS "not compared, with these flags: ${flags}")
elseif(headers MATCHES "[^ ]*/immintrin\\.h")
  message(FATAL_ERROR "xla.hpp includes ${CMAKE_MATCH_0}, half a second of each compilation")
elseif(kilobytes GREATER most)
  message(FATAL_ERROR "xla.hpp has got larger: what is rarely used is a header that programs include by name, and what "
                      "only the run time uses belongs where XLA_RUNTIME_HERE is (base/instance.hpp)")
endif()
