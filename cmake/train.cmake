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
# CMake relays a child's output through a pipe. The progress line wants the terminal itself, where there is one.
set(on_terminal [=[
out=/proc/$PPID/fd/1
if test -t 3 3>>$out; then exec "$@" >$out 2>&1; else exec "$@"; fi
]=])
execute_process(COMMAND sh -c "${on_terminal}" sh "${BUILD}/examples/train_decoder" ${arguments}
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "train_decoder ended with ${result}")
endif()
