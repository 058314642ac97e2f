# SPDX-License-Identifier: Apache-2.0
# Builds the page that trains in a browser: cmake -P cmake/web.cmake; then serve build/web/web
#   -DEIGEN=<folder>   Eigen's main branch, a folder with Eigen/Core in it; without, it is downloaded
#   -DTEST=ON          also runs its tests, by node and by Chromium, and those of the platform
#   -DBUILD=<folder>   default build/web
# Options are before -P. It installs by apt what is missing.

include("${CMAKE_CURRENT_LIST_DIR}/bootstrap.cmake")
xla_need(ninja-build:ninja libboost-dev ${xla_wasi_packages})
if(NOT BUILD)
  set(BUILD "${XLA_ROOT}/build/web")
endif()
get_filename_component(BUILD "${BUILD}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
set(options "")
if(EIGEN)
  get_filename_component(EIGEN "${EIGEN}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  if(NOT EXISTS "${EIGEN}/Eigen/Core")
    message(FATAL_ERROR "${EIGEN} has no Eigen/Core")
  endif()
  list(APPEND options "-DFETCHCONTENT_SOURCE_DIR_EIGEN3=${EIGEN}")
endif()
set(target --target web_trainer)
if(TEST)
  xla_need(OPTIONAL chromium-headless-shell:chromium-headless-shell)
  set(target "")
else()
  set(TEST OFF)
endif()

xla_configure("${BUILD}" "-DCMAKE_TOOLCHAIN_FILE=${XLA_ROOT}/cmake/wasi.cmake" -DCMAKE_BUILD_TYPE=Release
  -DXLA_INSTALL=OFF -DXLA_BUILD_EXAMPLES=ON -DXLA_BUILD_TESTS=${TEST} ${options})
xla_build("${BUILD}" result ${target})
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the page does not build")
endif()
if(TEST)
  get_filename_component(bin "${CMAKE_COMMAND}" DIRECTORY)
  execute_process(COMMAND "${bin}/ctest" --test-dir "${BUILD}" --output-on-failure RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "the tests failed")
  endif()
endif()
message("The page is in ${BUILD}/web; python3 -m http.server --directory ${BUILD}/web serves it.")
