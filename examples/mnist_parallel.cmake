# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=<mnist_parallel> -P mnist_parallel.cmake: two devices, one, and none without XLA learn the digits that
# it draws; one learns bit for bit what none does.

cmake_minimum_required(VERSION 3.24)
foreach(devices IN ITEMS 0 1 2)
  execute_process(COMMAND "${PROGRAM}" "" ${devices} 4 RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT result EQUAL 0 OR NOT output MATCHES "${devices} devices, accuracy at the end: (9[0-9]|100)[.]")
    message(FATAL_ERROR "with ${devices} devices it ended with ${result}:\n${output}${errors}")
  endif()
  string(REGEX MATCHALL "epoch [^\n]*" epochs_${devices} "${output}")
endforeach()
if(NOT epochs_0 STREQUAL epochs_1)
  message(FATAL_ERROR "without XLA: ${epochs_0}\non one device: ${epochs_1}")
endif()
if(NOT epochs_2 MATCHES "1 batches left over")
  message(FATAL_ERROR "of ${epochs_2} none was left over")
endif()
