# SPDX-License-Identifier: Apache-2.0
# The reference documentation, from the headers: cmake -P cmake/docs.cmake
#   -DBUILD=<folder>   default build/docs; the pages begin at html/index.html
#   -DWAYS=<file>      what the test checks/conformance wrote; default that of a folder below build/. Beside it lies what
#                      checks/conformance_plugin wrote, where there is a plugin of XLA
# Options stand before -P. Fails on warnings, such as a name in a comment that does not exist.

include("${CMAKE_CURRENT_LIST_DIR}/bootstrap.cmake")
if(NOT BUILD)
  set(BUILD "${XLA_ROOT}/build/docs")
endif()
get_filename_component(BUILD "${BUILD}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
xla_need(doxygen:doxygen python3:python3)
find_program(doxygen doxygen REQUIRED)
find_program(python3 python3 REQUIRED)

file(MAKE_DIRECTORY "${BUILD}")
execute_process(COMMAND "${python3}" "${CMAKE_CURRENT_LIST_DIR}/op_table.py" "${XLA_ROOT}/include"
  OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
if(NOT WAYS)
  file(GLOB all "${XLA_ROOT}/build/*/tests/ways/ways.txt" "${XLA_ROOT}/build/tests/ways/ways.txt")
  list(SORT all)
  list(POP_FRONT all WAYS)
endif()
if(EXISTS "${WAYS}")
  cmake_path(REPLACE_FILENAME WAYS plugin.txt OUTPUT_VARIABLE plugin)
  if(EXISTS "${plugin}")
    file(STRINGS "${plugin}" lines)
    foreach(line IN LISTS lines)
      string(REGEX MATCH "^([^ ]+) (.*)$" _ "${line}")
      set("plugin_${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}")
    endforeach()
  else()
    message("==> without the column of XLA, which the test checks/conformance_plugin writes")
  endif()
  string(APPEND table "\n# Ops in every way of running\n
How many bodies of the tests use an op and give the same bits in all ways, gradients included. And how far XLA's plugin is
from them at most, by the type of what it reads first: units in the last place of the element, or where an op adds up of the sum of the terms'
magnitudes. What has none there runs in programs of several ops alone.\n
| op | bodies | eager | traced | compiled | interpreter | plugin |\n|---|---|---|---|---|---|---|\n")
  file(STRINGS "${WAYS}" lines)
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^(.+) (.+)$" _ "${line}")
    string(APPEND table "| `${CMAKE_MATCH_1}` | ${CMAKE_MATCH_2} | yes | yes | yes | yes | ${plugin_${CMAKE_MATCH_1}} |\n")
  endforeach()
else()
  message("==> without the table of ops in every way, which the test checks/conformance writes")
endif()
file(WRITE "${BUILD}/ops.md" "# Ops {#ops}\n\n${table}")
execute_process(COMMAND "${python3}" "${CMAKE_CURRENT_LIST_DIR}/pytorch_table.py" "${XLA_ROOT}/include"
  OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
file(WRITE "${BUILD}/pytorch.md" "# PyTorch's functions {#pytorch}\n\n${table}")
configure_file("${CMAKE_CURRENT_LIST_DIR}/Doxyfile.in" "${BUILD}/Doxyfile" @ONLY)
execute_process(COMMAND "${doxygen}" -q "${BUILD}/Doxyfile" WORKING_DIRECTORY "${XLA_ROOT}"
  COMMAND_ERROR_IS_FATAL ANY)
message("==> ${BUILD}/html/index.html")
