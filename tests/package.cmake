# SPDX-License-Identifier: Apache-2.0
# Builds and runs programs of two translation units against the tree (fetch) or an installed copy (find).

cmake_minimum_required(VERSION 3.24)

include("${CMAKE_CURRENT_LIST_DIR}/run_command.cmake")

file(REMOVE_RECURSE "${WORK}")
set(prefix_path ${PREFIX_PATH})
if(WAY STREQUAL "find")
  run("${CMAKE_COMMAND}" --install "${BUILT}" --prefix "${WORK}/prefix")
  list(APPEND prefix_path "${WORK}/prefix")
endif()
list(JOIN prefix_path "\\;" prefix_path)
run("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}/package/${WAY}" -B "${WORK}/build"
  -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${FLAGS} -O0"
  "-DCMAKE_PREFIX_PATH=${prefix_path}" "-DXLA_TREE=${SOURCE}")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
if(WAY STREQUAL "fetch")
  run("${WORK}/build/consumer")
else()
  run("${WORK}/build/consumer_runtime")
  run("${WORK}/build/consumer_interpreter")
  run("${WORK}/build/consumer_pjrt")
  if(EXISTS "${WORK}/build/consumer_optional")
    run("${WORK}/build/consumer_optional")
  elseif(OPTIONAL)
    message(FATAL_ERROR "from outside xla::images, xla::sentencepiece or xla::mpi is not there")
  else()
    message("without xla::images, xla::sentencepiece and xla::mpi, one of which is not there")
  endif()
endif()

# A program without the run time, or with one for other registers, does not link; the error says what to do.
function(refuse target)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK}/build" --target ${target}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result EQUAL 0)
    message(FATAL_ERROR "${target} links, and must not")
  elseif(NOT output MATCHES "xla_runtime_[a-z0-9_]*__link_xla_runtime_or_xla_add_runtime_with_the_same_march")
    message(FATAL_ERROR "${target} does not build, but nothing says what to do:\n${output}")
  endif()
endfunction()
cmake_host_system_information(RESULT processor QUERY OS_PLATFORM)  # a script has no CMAKE_HOST_SYSTEM_PROCESSOR
if(WAY STREQUAL "find")
  refuse(without)
  if(processor MATCHES "x86_64|AMD64")
    refuse(mixed)
  endif()
endif()
