# SPDX-License-Identifier: Apache-2.0
# What PyTorch computed is what its generator says, and all of it is compared: -DPROGRAMS -DFOLDER -DWORK. The programs
# write down the cases that they look up.

cmake_minimum_required(VERSION 3.24)

file(STRINGS "${FOLDER}/ops.txt" lines ENCODING UTF-8)
list(POP_FRONT lines head)
file(SHA256 "${FOLDER}/make.py" sum)
if(NOT head MATCHES "^# PyTorch [0-9.]+, make.py ${sum}$")
  message(FATAL_ERROR "ops.txt was made by another make.py, whose sum is ${sum}: run that again. It begins: ${head}")
endif()

set(ENV{XLA_TEST_CASES} "${WORK}")
file(REMOVE "${WORK}")
foreach(program IN LISTS PROGRAMS)
  execute_process(COMMAND "${program}" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(STRINGS "${WORK}" used)
set(cases "")
foreach(line IN LISTS lines)
  string(REGEX MATCH "^[^ ]+" case "${line}")
  list(APPEND cases "${case}")
endforeach()
list(LENGTH cases count)
list(REMOVE_ITEM cases ${used})
if(cases OR count LESS 500)
  list(JOIN cases " " names)
  message(FATAL_ERROR "of ${count} cases in ops.txt no test looks at: ${names}")
endif()
message(STATUS "${count} cases, all compared")
