# SPDX-License-Identifier: Apache-2.0
# The sources of the benchmarks pass the compiler's front end, as they are built: with the run time in a library, and
# with fewer layers or nodes where that is an option. No test builds them whole. -DFOLDER -DFLAGS_FILE -DCOMPILER -DWORK

cmake_minimum_required(VERSION 3.24)

file(STRINGS "${FLAGS_FILE}" flags)
list(APPEND flags -DXLA_EXTERN_RUNTIME -DBLOCKS=2 -DLAYERS=2 -DNODES=2 -DSTATES=4 -DHIDDEN=64 -DRESNET=ResNet18 -Wall -Wextra -Wpedantic -Werror)
file(GLOB sources "${FOLDER}/*.cpp")
list(FILTER sources EXCLUDE REGEX "/decoder_(char|deep|seed)[.]cpp$")  # decoder.cpp with other numbers
if(NOT sources)
  message(FATAL_ERROR "no sources in ${FOLDER}")
endif()

# What most of them include, some by a header of theirs, is read once; others include less.
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
set(header "${WORK}/xla.hpp")
file(WRITE "${header}" "#include <xla/xla.hpp>\n")
execute_process(COMMAND "${COMPILER}" ${flags} -Xclang -fpch-instantiate-templates -x c++-header "${header}"
    -o "${header}.pch"
  COMMAND_ERROR_IS_FATAL ANY)
set(with "")
set(without "")
foreach(source IN LISTS sources)
  file(STRINGS "${source}" whole REGEX
    "^#include (<xla/xla[.]hpp>|<xla/models/|HEADER|\"([a-z]+_task|decoder|reading|residual|training)[.]hpp\")")
  if(whole)
    list(APPEND with "${source}")
  else()
    list(APPEND without "${source}")
  endif()
endforeach()
execute_process(COMMAND "${COMPILER}" ${flags} -fsyntax-only -include "${header}" ${with} RESULT_VARIABLE failed)
execute_process(COMMAND "${COMPILER}" ${flags} -fsyntax-only ${without} RESULT_VARIABLE failed_without)
file(REMOVE "${header}.pch")
if(failed OR failed_without)
  message(FATAL_ERROR "these do not compile")
endif()
