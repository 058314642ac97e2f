# SPDX-License-Identifier: Apache-2.0
# The package as package managers have it: -DWAY=pkgconfig -DBUILT -DWORK -DCOMPILER -DID -DFLAGS -DVERSION

cmake_minimum_required(VERSION 3.24)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nfailed:\n${output}")
  endif()
  string(STRIP "${output}" output)
  set(output "${output}" PARENT_SCOPE)
endfunction()

# build_small(<flag>...): the program, of headers alone, prints nothing and returns 0.
function(build_small)
  separate_arguments(flags NATIVE_COMMAND "${FLAGS}")
  run("${COMPILER}" ${flags} -O0 -DXLA_NO_TRACED "${CMAKE_CURRENT_LIST_DIR}/package/small.cpp" ${ARGN} -o "${WORK}/small")
  run("${WORK}/small")
endfunction()

file(REMOVE_RECURSE "${WORK}")
if(WAY STREQUAL "pkgconfig")
  run("${CMAKE_COMMAND}" --install "${BUILT}" --prefix "${WORK}/installed")
  file(RENAME "${WORK}/installed" "${WORK}/moved")
  set(ENV{PKG_CONFIG_PATH} "${WORK}/moved/share/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  set(module xla)
  if(ID MATCHES "Clang")
    set(module xla-clang)
  endif()
  run(pkg-config --modversion ${module})
  if(NOT output STREQUAL VERSION)
    message(FATAL_ERROR "${module}.pc has the version ${output}, the project ${VERSION}")
  endif()
  run(pkg-config --cflags --libs ${module})
  separate_arguments(flags UNIX_COMMAND "${output}")
  build_small(${flags})
endif()
