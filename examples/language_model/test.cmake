# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=<language_model> -DFOLDER=<folder> -P test.cmake: it learns the pages that it finds without data, and
# the three texts of a folder; weights that it wrote have the same perplexity; it refuses a text that is too short.

cmake_minimum_required(VERSION 3.24)

function(learn)
  execute_process(COMMAND "${PROGRAM}" ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(result "${result}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()
# learn_to(<low> <high> <argument>...): to a perplexity of the test text in between.
function(learn_to low high)
  learn(${ARGN})
  if(NOT result EQUAL 0 OR NOT output MATCHES "test loss [0-9.]+, ppl ([0-9.]+)")
    message(FATAL_ERROR "no perplexity, but ${result}:\n${output}")
  endif()
  set(perplexity "${CMAKE_MATCH_1}" PARENT_SCOPE)
  if(CMAKE_MATCH_1 LESS low OR CMAKE_MATCH_1 GREATER high)
    message(FATAL_ERROR "the perplexity is not between ${low} and ${high}:\n${output}")
  endif()
endfunction()

set(folder "${FOLDER}/language_model_test")
file(REMOVE_RECURSE "${folder}")
learn_to(20 60 --bytes --steps 12 --lr 5)
message("bytes of the pages: ${perplexity}")

# Where each word follows from the one before, a text is learned by heart.
string(REPEAT "one two three four\nfive six seven eight\n" 40 text)
foreach(part IN ITEMS train valid test)
  file(WRITE "${folder}/${part}.txt" "${text}")
endforeach()
set(common --data "${folder}" --batch_size 4 --bptt 10 --dropout 0)
set(weights "${folder}/weights.safetensors")
learn_to(1 1.5 ${common} --epochs 8 --lr 10 --save "${weights}")
message("words of a folder: ${perplexity}")
set(learned "${perplexity}")
learn_to(${learned} ${learned} ${common} --steps 1 --lr 0 --weights "${weights}")

file(WRITE "${folder}/short.txt" "one two three\n")
learn(--data "${folder}/short.txt")
if(result EQUAL 0 OR NOT output MATCHES "language_model: .* is too short for 20 columns")
  message(FATAL_ERROR "a text that is too short ended with ${result}:\n${output}")
endif()
