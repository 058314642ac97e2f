# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=<resnet18> -P test.cmake: it has as many parameters as torchvision's, learns a few images by heart, and
# has the same losses in every mode.

cmake_minimum_required(VERSION 3.24)

set(expected "")
foreach(mode IN ITEMS compiled traced eager)
  execute_process(COMMAND "${PROGRAM}" --mode ${mode} --images 4 --batch 4 --size 32 --steps 6 --log-every 1
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "resnet18 --mode ${mode} ended with ${result}\n${output}")
  endif()
  if(NOT output MATCHES "ResNet-18: 11689512 parameters")
    message(FATAL_ERROR "another number of parameters:\n${output}")
  endif()
  if(NOT output MATCHES "loss: ([0-9.]+) to ([0-9.]+) in 6 steps" OR NOT CMAKE_MATCH_2 LESS CMAKE_MATCH_1)
    message(FATAL_ERROR "no loss that falls:\n${output}")
  endif()
  set(losses "${CMAKE_MATCH_1} ${CMAKE_MATCH_2}")
  if(expected STREQUAL "")
    set(expected "${losses}")
  elseif(NOT losses STREQUAL expected)
    message(FATAL_ERROR "${mode}: ${losses}\ncompiled: ${expected}")
  endif()
endforeach()
message("${expected}")
