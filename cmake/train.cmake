# SPDX-License-Identifier: Apache-2.0
# Trains the decoder of examples/: cmake -DARGS="--steps 100" -P cmake/train.cmake

include("${CMAKE_CURRENT_LIST_DIR}/bootstrap.cmake")
xla_need(ninja-build:ninja g++:c++ libeigen3-dev libboost-dev libcli11-dev nlohmann-json3-dev)
if(NOT BUILD)
  set(BUILD "${XLA_ROOT}/build/train")
endif()
get_filename_component(BUILD "${BUILD}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")

xla_configure("${BUILD}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-march=native
  "-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG" -DXLA_BUILD_TESTS=OFF -DXLA_BUILD_EXAMPLES=ON)
xla_build("${BUILD}" result --target train_decoder)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "train_decoder does not build")
endif()

separate_arguments(arguments UNIX_COMMAND "${ARGS}")
execute_process(COMMAND ${xla_on_terminal} "${BUILD}/examples/train_decoder" ${arguments}
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "train_decoder ended with ${result}")
endif()
