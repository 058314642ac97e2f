# SPDX-License-Identifier: Apache-2.0
# Every op is right in every mode: -DPROGRAMS, each with its arguments after `|`, -DNAMES -DWORK=<folder> -DROOT.
# A test that is built writes down in WORK/<name>.txt which ops its bodies used that gave the same eager, traced, compiled
# and interpreted (tests/support/ops_used.hpp); what has not run since it was built, runs here. Writes WORK/modes.txt: each op,
# and in how many bodies.

cmake_minimum_required(VERSION 3.24)
include("${CMAKE_CURRENT_LIST_DIR}/op_names.cmake")

foreach(program name IN ZIP_LISTS PROGRAMS NAMES)
  set(file "${WORK}/${name}.txt")
  string(REPLACE "|" ";" command "${program}")
  list(GET command 0 executable)
  if("${executable}" IS_NEWER_THAN "${file}")
    set(ENV{XLA_TEST_OPS_USED} "${file}")
    execute_process(COMMAND ${command} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endif()
  if(NOT EXISTS "${file}")  # no body of it runs in every mode
    file(WRITE "${file}" "")
  endif()
  file(STRINGS "${file}" used)
  foreach(op IN LISTS used)
    if(NOT DEFINED "bodies_${op}")
      set("bodies_${op}" 0)
    endif()
    math(EXPR "bodies_${op}" "${bodies_${op}} + 1")
  endforeach()
endforeach()

op_names(ops "${ROOT}")
set(table "")
set(missing "")
foreach(op IN LISTS ops)
  if(bodies_${op})
    string(APPEND table "${op} ${bodies_${op}}\n")
  else()
    list(APPEND missing "${op}")
  endif()
endforeach()
list(LENGTH ops count)
if(missing)
  list(JOIN missing ", " names)
  message(FATAL_ERROR "of ${count} ops these are in no body that is right in every mode (test::check_modes): ${names}")
endif()
file(WRITE "${WORK}/modes.txt" "${table}")
message(STATUS "${count} ops, each eager, traced, compiled and interpreted")
