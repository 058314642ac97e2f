# SPDX-License-Identifier: Apache-2.0
# The whole test: cmake -P cmake/test.cmake
#   -DSTAGES="gcc;clang;asan;tsan;isa"   only these stages; isa is avx2 and avx512
#   -DMATCH=<regex>                      only tests whose name matches
#   -DJOBS=<n>                           parallel compilations and tests, 2 at most unless given
#   -DBUILD=<folder>                     default build/test
# Every stage is built first, then one ctest runs them all. Options stand before -P.

include("${CMAKE_CURRENT_LIST_DIR}/bootstrap.cmake")
if(NOT STAGES)
  set(STAGES gcc clang asan tsan isa)
endif()
if(NOT BUILD)
  set(BUILD "${XLA_ROOT}/build/test")
endif()
get_filename_component(BUILD "${BUILD}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")

# Labels, compiler and flags of each stage.
set(gcc_only "")
set(gcc_compiler g++)
set(gcc_flags "-O1")
set(clang_only core refused)
set(clang_compiler clang++-16)
set(clang_flags "-O1")
set(asan_only "asan")
set(asan_compiler clang++-16)
set(asan_flags "-O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer")
set(tsan_only "threads")
set(tsan_compiler clang++-16)
set(tsan_flags "-O1 -g1 -fsanitize=thread -fno-omit-frame-pointer")

# isa stands for avx2 and avx512, as far as this machine has them; the other stages have SSE2.
set(sets avx2 avx512)
set(avx2_march x86-64-v3)
set(avx2_needs avx2 fma bmi2)
set(avx512_march x86-64-v4)
set(avx512_needs avx512f avx512bw avx512cd avx512dq avx512vl)
set(cpu "")
if(EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo cpu REGEX "^flags" LIMIT_COUNT 1)
endif()
if("isa" IN_LIST STAGES)
  list(REMOVE_ITEM STAGES isa)
  list(APPEND STAGES ${sets})
endif()
# g++ 12 sees uninitialised registers in its AVX-512 header; in a precompiled header the library's pragma
# against that is forgotten.
set(avx512_more " -Wno-uninitialized -Wno-maybe-uninitialized")
foreach(set IN LISTS sets)
  set(${set}_only isa)
  set(${set}_compiler g++)
  set(${set}_flags "-O1 -march=${${set}_march}${${set}_more}")
  foreach(flag IN LISTS ${set}_needs)
    if(set IN_LIST STAGES AND NOT "${cpu} " MATCHES " ${flag} ")
      message("==> ${set}: this machine has no ${flag}, left out")
      list(REMOVE_ITEM STAGES ${set})
    endif()
  endforeach()
endforeach()

set(packages ninja-build:ninja g++:g++ libeigen3-dev libboost-dev catch2)
if("gcc" IN_LIST STAGES)
  list(APPEND packages libcli11-dev zlib1g-dev nlohmann-json3-dev doxygen:doxygen python3:python3)
endif()
if("clang" IN_LIST STAGES OR "asan" IN_LIST STAGES OR "tsan" IN_LIST STAGES)
  list(APPEND packages clang-16:clang++-16 libclang-rt-16-dev)
endif()
xla_need(${packages})
if("gcc" IN_LIST STAGES)
  # Opens the pages of profiles; the test of that passes without.
  xla_need(OPTIONAL chromium-headless-shell:chromium-headless-shell)
endif()

# TSan cannot map its shadow where the kernel randomises addresses too widely.
set(tsan_launcher "")
if("tsan" IN_LIST STAGES)
  execute_process(COMMAND setarch -R true RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    set(tsan_launcher "setarch\\;-R")
  endif()
endif()

set(failed "")
set(all "")
foreach(stage IN LISTS STAGES)
  if(NOT DEFINED ${stage}_compiler)
    message(FATAL_ERROR "no stage is called ${stage}")
  endif()
  string(TIMESTAMP time "%H:%M:%S")
  message("==> ${time} ${stage}: ${${stage}_compiler} ${${stage}_flags}")
  set(examples OFF)
  if(stage STREQUAL "gcc")
    set(examples ON)
  endif()
  string(REPLACE ";" "\\;" only "${${stage}_only}")
  xla_configure("${BUILD}/${stage}"
    "-DCMAKE_CXX_COMPILER=${${stage}_compiler}" "-DCMAKE_CXX_FLAGS=${${stage}_flags}"
    -DCMAKE_BUILD_TYPE= -DXLA_WERROR=ON -DXLA_BUILD_TESTS=ON -DXLA_BUILD_EXAMPLES=${examples}
    "-DXLA_TEST_ONLY=${only}" -DXLA_TEST_PREFIX=${stage}: "-DXLA_TEST_LAUNCHER=${${stage}_launcher}")
  # What does not build must not hide the rest; that the stage built counts as a test of its own.
  set(keep_going -- -k)
  file(STRINGS "${BUILD}/${stage}/CMakeCache.txt" ninja REGEX "^CMAKE_GENERATOR:INTERNAL=Ninja")
  if(ninja)
    list(APPEND keep_going 0)
  endif()
  xla_build("${BUILD}/${stage}" result ${keep_going})
  set(built true)
  if(NOT result EQUAL 0)
    set(built false)
    list(APPEND failed ${stage})
  endif()
  string(APPEND all "subdirs(\"${BUILD}/${stage}\")\n"
    "add_test(\"${stage}:builds\" \"${CMAKE_COMMAND}\" -E ${built})\n")
endforeach()

string(TIMESTAMP time "%H:%M:%S")
message("==> ${time} tests")
if(failed)
  list(JOIN failed ", " names)
  message("==> these stages did not build whole: ${names}")
endif()
file(WRITE "${BUILD}/CTestTestfile.cmake" "${all}")
set(match "")
if(MATCH)
  set(match -R "${MATCH}")
endif()
get_filename_component(bin "${CMAKE_COMMAND}" DIRECTORY)
execute_process(COMMAND "${bin}/ctest" --test-dir "${BUILD}" --parallel ${JOBS} --output-on-failure
    --no-tests=error --no-label-summary ${match}
  RESULT_VARIABLE result)
if(failed OR NOT result EQUAL 0)
  message(FATAL_ERROR "the test failed")
endif()
