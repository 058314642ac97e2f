# SPDX-License-Identifier: Apache-2.0
# What PyTorch computed is what its generator says, and all of it is compared: -DPROGRAMS, each with its arguments after `|`,
# -DNAMES -DFOLDER -DWORK=<folder>. A test that runs writes the cases that it looks up to WORK/<name>.txt; what has not run
# since it was built, runs here. Tables of C++ say who wrote them, and that one's sum.

cmake_minimum_required(VERSION 3.24)

set(GENERATORS make.py forms.py functions.py selection.py distributions.py images.py attention.py autocast.py models.py bert_vit.py gpt2_llama.py)
set(FILES ops.txt forms.txt functions.txt selection.txt distributions.txt images.txt attention.txt autocast.txt models.txt bert_vit.txt gpt2_llama.txt)

file(SHA256 "${FOLDER}/cases.py" shared)
set(cases "")
foreach(generator file IN ZIP_LISTS GENERATORS FILES)
  file(STRINGS "${FOLDER}/${file}" lines ENCODING UTF-8)
  list(POP_FRONT lines head)
  file(SHA256 "${FOLDER}/${generator}" sum)
  string(SHA256 sum "${sum}${shared}")
  if(NOT head MATCHES "^# PyTorch [0-9.]+, ${generator} ${sum}$")
    message(FATAL_ERROR "${file} was made by another ${generator} or cases.py, whose sum is ${sum}: run that again. "
      "It begins: ${head}")
  endif()
  if(generator STREQUAL "gpt2_llama.py" AND NOT NAMES MATCHES "ext_pretrained")
    continue()  # that test needs nlohmann-json
  endif()
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^[^ ]+" case "${line}")
    list(APPEND cases "${case}")
  endforeach()
endforeach()

foreach(table IN ITEMS tests/data/tokens.inc tests/data/bpe_tokens.inc
    include/xla/data/bert_characters.hpp include/xla/data/bpe_characters.hpp)
  set(root "${FOLDER}/../..")
  file(STRINGS "${root}/${table}" head LIMIT_COUNT 15 ENCODING UTF-8)
  if(NOT head MATCHES "// Written by ([^ ,]+), [^;:]+:;// ([0-9a-f]+);")
    message(FATAL_ERROR "${table} does not say what wrote it. It begins: ${head}")
  endif()
  set(generator "${CMAKE_MATCH_1}")
  set(written "${CMAKE_MATCH_2}")
  file(SHA256 "${root}/${generator}" sum)
  if(NOT written STREQUAL sum)
    message(FATAL_ERROR "${table} was written by another ${generator}, whose sum is ${sum}: run that again.")
  endif()
endforeach()

# The same program may run at the same time as a test of its own, and writes files of the same names.
set(ENV{TMPDIR} "${WORK}/tmp")
file(MAKE_DIRECTORY "${WORK}/tmp")
set(used "")
foreach(program name IN ZIP_LISTS PROGRAMS NAMES)
  set(file "${WORK}/${name}.txt")
  string(REPLACE "|" ";" command "${program}")
  list(GET command 0 executable)
  if("${executable}" IS_NEWER_THAN "${file}")
    set(ENV{XLA_TEST_CASES} "${file}")
    execute_process(COMMAND ${command} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endif()
  if(EXISTS "${file}")
    file(STRINGS "${file}" lines)
    list(APPEND used ${lines})
  endif()
endforeach()
list(LENGTH cases count)
list(REMOVE_ITEM cases ${used})
if(cases OR count LESS 500)
  list(JOIN cases " " names)
  message(FATAL_ERROR "of ${count} cases no test looks at: ${names}")
endif()
message(STATUS "${count} cases, all compared")
