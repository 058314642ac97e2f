# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> -DBUILD=<folder> [-DLAUNCHER=<compiler's launcher>] -P course.cmake: the pages of the course,
# compiled for Windows by MinGW, print under wine what they promise. Without page 11, whose libraries for pictures
# Debian has not for Windows.

cmake_minimum_required(VERSION 3.24)

set(pages 01_tensors 02_autograd 03_three_modes 04_layer_and_optimizer 05_shapes 06_metrics 07_table 08_mnist
  09_custom_ops 10_convnet 12_devices 13_backends 14_passes 15_loops 16_sequences)
# A compiler for another system must not see the headers beside Boost's.
file(MAKE_DIRECTORY "${BUILD}/headers")
file(CREATE_LINK /usr/include/boost "${BUILD}/headers/boost" SYMBOLIC)
execute_process(COMMAND "${CMAKE_COMMAND}" -G Ninja -S "${ROOT}" -B "${BUILD}/examples"
    "-DCMAKE_TOOLCHAIN_FILE=${ROOT}/cmake/mingw.cmake" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"
    "-DHana_INCLUDE_DIR=${BUILD}/headers" "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}"
    -DXLA_INSTALL=OFF -DXLA_BUILD_EXAMPLES=ON -DXLA_BUILD_TESTS=OFF
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD}/examples" --parallel 1 --target ${pages}
  COMMAND_ERROR_IS_FATAL ANY)
foreach(page IN LISTS pages)
  execute_process(COMMAND "${CMAKE_COMMAND}" -DEMULATOR=wine "-DPROGRAM=${BUILD}/examples/examples/${page}.exe"
      "-DSOURCE=${ROOT}/examples/${page}.cpp" -P "${ROOT}/examples/check.cmake"
    WORKING_DIRECTORY "${BUILD}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
