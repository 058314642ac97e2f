# SPDX-License-Identifier: Apache-2.0
# JAX's compiler reads the StableHLO of every program that the tests of loops make, and computes what this library does:
#
#   XLA_PJRT_PLUGIN=<plugin> cmake -DPYTHON=<one that has JAX> -P tests/reference/loops.cmake
#
# By hand. Builds the tests with ext/referee.cpp, runs them on it and the interpreter, and gives what they have exported to
# stablehlo.py.
# Tests that count compilations, copies or bytes fail on this backend. Takes an hour on two processors.
#   -DMATCH=<regex>    other tests than '^loop/|^ext/pjrt_loops$'
#   -DJOBS=<n>         parallel compilations, 2 at most unless given
#   -DBUILD=<folder>   default build/test/referee; -DOPTIONS=<-Doption;...> for its cmake

include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/bootstrap.cmake")
if(NOT MATCH)
  set(MATCH "^loop/|^ext/pjrt_loops$")
endif()
if(NOT BUILD)
  set(BUILD "${XLA_ROOT}/build/test/referee")
endif()
if(NOT PYTHON)
  set(PYTHON python3)
endif()
get_filename_component(BUILD "${BUILD}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")

xla_configure("${BUILD}" -DCMAKE_CXX_FLAGS=-O1 -DCMAKE_BUILD_TYPE= -DXLA_BUILD_TESTS=ON -DXLA_BUILD_EXAMPLES=OFF
  -DXLA_TEST_FLAGS=-O0 -DXLA_TEST_SHARED=ON "-DXLA_REFEREE_TESTS=${MATCH}" ${OPTIONS})
set(targets "")
macro(xla_test_needs test)
  if("${test}" MATCHES "${MATCH}")
    list(APPEND targets ${ARGN})
  endif()
endmacro()
include("${BUILD}/test_targets.cmake")
list(REMOVE_DUPLICATES targets)
xla_build("${BUILD}" result --target ${targets})
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the tests do not build")
endif()

set(programs "${BUILD}/programs")
file(REMOVE_RECURSE "${programs}")
file(MAKE_DIRECTORY "${programs}")
set(ENV{XLA_BACKEND} referee)
set(ENV{XLA_TEST_PROGRAMS} "${programs}")
get_filename_component(bin "${CMAKE_COMMAND}" DIRECTORY)
execute_process(COMMAND "${bin}/ctest" --test-dir "${BUILD}" -R "${MATCH}" --output-on-failure --parallel ${JOBS}
  --timeout 3000 --no-tests=error OUTPUT_FILE "${BUILD}/tests.txt")
message("==> what the tests print, and what XLA computes otherwise by itself, is in ${BUILD}/tests.txt")
execute_process(COMMAND "${PYTHON}" "${CMAKE_CURRENT_LIST_DIR}/stablehlo.py" "${programs}" RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "JAX's compiler does not make the same of them")
endif()
