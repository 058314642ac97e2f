# SPDX-License-Identifier: Apache-2.0
# Runs all tests and checks with one compiler: cmake -P cmake/test.cmake
# With clang, sanitizers and further instruction sets as well: cmake -DSTAGES=all -P cmake/test.cmake
#   -DSTAGES="gcc;clang;asan;tsan;isa"   these stages; isa is avx2 and avx512. With pjrt among them, pip brings a
#                                        plugin of XLA, and tests that need one are not skipped. With aarch64, tests
#                                        compile a program for that processor and run it by an emulator; with ports,
#                                        for i386, s390x, Windows and WebAssembly, too; with SIMD and the page in a browser
#                                        where XLA_EIGEN_NEXT names a folder with Eigen's main branch
#   -DMATCH=<regex>                      only tests whose name matches, and of each stage only what they need is built:
#                                        -DMATCH=op/relu, with its stage '^clang:op/relu$'
#   -DJOBS=<n>                           parallel compilations and tests, 2 at most unless given
#   -DBUILD=<folder>                     default build/test
#   -DCOMPLETE=ON                        a test whose package cannot be had fails, and is not left out
# Every stage is built first, then one ctest runs them all. Options are before -P. Each build prints its
# progress: [stage, its number: steps done of all, seconds of those budgeted].

include("${CMAKE_CURRENT_LIST_DIR}/bootstrap.cmake")
string(TIMESTAMP begin %s)
if(NOT BUILD)
  set(BUILD "${XLA_ROOT}/build/test")
endif()
get_filename_component(BUILD "${BUILD}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
include("${CMAKE_CURRENT_LIST_DIR}/test_report.cmake")

# xla_stage(<name> <compiler> <build> <tests> <flags> [<label>...]): runs the tests with one of these labels, or all.
# The budget has two numbers: the seconds in which a fast machine with two processors configures and builds the stage,
# and the seconds of one processor that its tests take, as ctest counts them. A slow machine may take twice as long. A
# stage over its budget is reported and does not fail. The numbers come from one run without ccache on a Zen 4 of two
# processors, divided by 1.6, as compilations take so much longer there than on a Zen 5.
set(known "")
macro(xla_stage name compiler build tests flags)
  list(APPEND known ${name})
  set(${name}_compiler ${compiler})
  set(${name}_fast ${build})
  set(${name}_tests ${tests})
  set(${name}_flags "${flags}")
  set(${name}_only ${ARGN})
endmacro()
set(sanitizer "-g1 -fno-omit-frame-pointer")
# What the address sanitizer sees where it is read or written, and most of what the undefined one takes to compile.
set(addresses "-fno-sanitize=pointer-overflow,object-size")
# g++ 12 sees uninitialised registers in its AVX-512 header; in a precompiled header the library's pragma
# against that is forgotten.
set(uninitialised "-Wno-uninitialized -Wno-maybe-uninitialized")
# The kernels are in the run time, which is optimised; tests run briefly, and of g++'s passes they have those that
# shorten their compilation: it takes a third less than with -O1, and a tenth less than with -O0.
set(brief -Og -fno-tree-pta -fno-tree-fre -fno-tree-dominator-opts -fno-tree-ter -fno-tree-ch
  -fno-tree-sink -fno-tree-slsr -fno-tree-loop-optimize -fno-ipa-modref -fno-ipa-pure-const
  -fno-ipa-reference -fno-ipa-profile -fno-forward-propagate -fno-cprop-registers -fno-compare-elim
  -fno-shrink-wrap -fno-reorder-blocks -fno-combine-stack-adjustments)
list(JOIN brief " " brief)
foreach(stage IN ITEMS gcc avx2 avx512)
  set(${stage}_units "${brief}")
endforeach()
# The run time, and tests that are OPTIMISED, are checked for these as well, which take clang a fifth of what it compiles of
# a test. What is read or written by a null pointer ends a test anyway.
set(asan_units "-fno-sanitize=null,alignment")
#         name   compiler    build tests flags
xla_stage(gcc    g++           522   427 "-O1")
xla_stage(clang  clang++-16     89   189 "-O0" core refused)
xla_stage(asan   clang++-16    106   121
  "-O0 -fsanitize=address,undefined -fno-sanitize-recover=all ${addresses} ${sanitizer}" asan)
xla_stage(tsan   clang++-16     57    35 "-O0 -fsanitize=thread ${sanitizer}" threads)
xla_stage(avx2   g++            50    15 "-O1 -march=x86-64-v3 ${uninitialised}" isa)
xla_stage(avx512 g++            51    15 "-O1 -march=x86-64-v4 ${uninitialised}" isa)

set(hint "")
if(NOT STAGES)
  set(STAGES gcc)
  set(hint "; -DSTAGES=all has the others")
endif()
if("all" IN_LIST STAGES)
  set(STAGES gcc clang asan tsan isa pjrt aarch64)
endif()
# It builds nothing of its own.
set(pjrt OFF)
if("pjrt" IN_LIST STAGES)
  set(pjrt ON)
  list(REMOVE_ITEM STAGES pjrt)
  if(NOT STAGES)
    set(STAGES gcc)
  endif()
endif()
# Nor do these.
set(ports "")
if("ports" IN_LIST STAGES)
  set(ports aarch64 i386 s390x windows wasi)
  if(DEFINED ENV{XLA_EIGEN_NEXT})  # a folder with the headers of Eigen's main branch
    list(APPEND ports wasi-simd)
  endif()
elseif("aarch64" IN_LIST STAGES)
  set(ports aarch64)
endif()
list(REMOVE_ITEM STAGES ports aarch64)
if(ports AND NOT "gcc" IN_LIST STAGES)
  list(PREPEND STAGES gcc)
endif()
# isa stands for avx2 and avx512, as far as this machine has them; the other stages have SSE2.
set(sets avx2 avx512)
list(TRANSFORM STAGES REPLACE "^isa$" "avx2;avx512")
list(REMOVE_DUPLICATES STAGES)
foreach(stage IN LISTS STAGES)
  if(NOT stage IN_LIST known)
    list(JOIN known " " names)
    message(FATAL_ERROR "no stage is called ${stage}; there are: ${names}, isa for the last two, pjrt, aarch64, ports, and all")
  endif()
endforeach()
set(avx2_needs avx2 fma bmi2)
set(avx512_needs avx512f avx512bw avx512cd avx512dq avx512vl)
set(cpu "")
if(EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo cpu REGEX "^flags" LIMIT_COUNT 1)
endif()
foreach(set IN LISTS sets)
  foreach(flag IN LISTS ${set}_needs)
    if(set IN_LIST STAGES AND NOT "${cpu} " MATCHES " ${flag} ")
      message("==> ${set}: this machine has no ${flag}, left out")
      list(REMOVE_ITEM STAGES ${set})
    endif()
  endforeach()
endforeach()

set(packages ninja-build:ninja g++:g++ libeigen3-dev libboost-dev catch2)
if("gcc" IN_LIST STAGES)
  list(APPEND packages libcli11-dev libdlpack-dev zlib1g-dev nlohmann-json3-dev libpng-dev libjpeg62-turbo-dev
    libsentencepiece-dev libopenmpi-dev openmpi-bin libmpich-dev mpich doxygen:doxygen python3:python3 codespell:codespell
    pkgconf:pkg-config)
endif()
if("aarch64" IN_LIST ports)
  list(APPEND packages g++-aarch64-linux-gnu:aarch64-linux-gnu-g++ qemu-user:qemu-aarch64)
endif()
if("windows" IN_LIST ports)
  list(APPEND packages g++-i686-linux-gnu:i686-linux-gnu-g++ g++-s390x-linux-gnu:s390x-linux-gnu-g++
    g++-mingw-w64-x86-64-posix:x86_64-w64-mingw32-g++-posix wine64 wine:wine ${xla_wasi_packages})
endif()
if("clang" IN_LIST STAGES OR "asan" IN_LIST STAGES OR "tsan" IN_LIST STAGES)
  list(APPEND packages clang-16:clang++-16 libclang-rt-16-dev lld-16:ld.lld-16)
endif()
xla_need(${packages})
if("gcc" IN_LIST STAGES)
  set(optional OPTIONAL)
  if(COMPLETE)
    set(optional "")
  endif()
  # Opens the pages of profiles; the test of that passes without.
  xla_need(${optional} chromium-headless-shell:chromium-headless-shell)
  xla_need(${optional} valgrind:valgrind)  # a processor without AVX-512
else()
  set(COMPLETE OFF)  # the other stages do not install what all tests need
endif()
if(NOT COMPLETE)
  set(COMPLETE OFF)
endif()
if(pjrt AND COMPLETE)
  xla_need_plugin("${BUILD}")
elseif(pjrt)
  xla_need_plugin(OPTIONAL "${BUILD}")
endif()

# TSan cannot map its shadow where the kernel randomises addresses too widely.
set(tsan_launcher "")
if("tsan" IN_LIST STAGES)
  execute_process(COMMAND setarch -R true RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    set(tsan_launcher "setarch\\;-R")
  endif()
  set(ENV{TSAN_OPTIONS} "die_after_fork=0:$ENV{TSAN_OPTIONS}")  # a child starts threads, too
endif()

list(LENGTH STAGES count)
set(fast 0)
foreach(stage IN LISTS STAGES)
  math(EXPR fast "${fast} + ${${stage}_fast} + ${${stage}_tests} / 2")
endforeach()
math(EXPR slow "2 * ${fast}")
xla_minutes(fast ${fast})
xla_minutes(slow ${slow})
list(JOIN STAGES " " names)
message("==> stages: ${names}; about ${fast}, on a slow machine ${slow}${hint}")

# xla_test_needs(<test> <target>...): a line of a stage's test_targets.cmake.
macro(xla_test_needs test)
  if("${test}" MATCHES "${MATCH}")
    list(APPEND targets ${ARGN})
  endif()
endmacro()

# Of a few tests each is compiled alone, so that a changed header compiles little again.
set(shared ON)
if(MATCH AND NOT MATCH MATCHES "plugin|^.?[a-z]+/?$")
  set(shared OFF)
endif()

set(failed "")
set(all "")
set(times "set(jobs ${JOBS})\nset(stages ${STAGES})\n")
set(catch "")
set(number 0)
foreach(stage IN LISTS STAGES)
  math(EXPR number "${number} + 1")
  string(TIMESTAMP started %s)
  math(EXPR since "${started} - ${begin}")
  math(EXPR slow "2 * ${${stage}_fast}")
  xla_minutes(since ${since})
  xla_minutes(fast ${${stage}_fast})
  xla_minutes(slow ${slow})
  message("==> ${since} stage ${number} of ${count}, ${stage}: ${${stage}_compiler} ${${stage}_flags}; "
    "about ${fast}, on a slow machine ${slow}")
  set(examples OFF)
  set(tried "")
  if(stage STREQUAL "gcc")
    set(examples ON)
    string(REPLACE ";" "\\;" tried "${ports}")
  endif()
  string(REPLACE ";" "\\;" only "${${stage}_only}")
  # ctest sums up the time of each label; the budget is in it, for comparison.
  math(EXPR slow "2 * ${${stage}_tests}")
  set(label "${stage}, budget ${${stage}_tests} s, slow ${slow} s")
  xla_configure("${BUILD}/${stage}"
    "-DCMAKE_CXX_COMPILER=${${stage}_compiler}" "-DCMAKE_CXX_FLAGS=${${stage}_flags}"
    -DCMAKE_BUILD_TYPE= -DXLA_WERROR=ON -DXLA_BUILD_TESTS=ON -DXLA_BUILD_EXAMPLES=${examples}
    -DXLA_EXAMPLE_DECODERS=tiny_gpt2  # the others build alike
    "-DXLA_TEST_ONLY=${only}" "-DXLA_TEST_FLAGS=${${stage}_units}"
    -DXLA_TEST_PREFIX=${stage}: "-DXLA_TEST_LABEL=${label}"
    "-DXLA_TEST_LAUNCHER=${${stage}_launcher}" "-DXLA_TEST_PORTS=${tried}" -DXLA_TEST_SHARED=${shared} -DXLA_TEST_COMPLETE=${COMPLETE} "-DXLA_TEST_CATCH=${catch}")
  string(TIMESTAMP configured %s)
  # What does not build must not hide the rest; that the stage built counts as a test of its own.
  set(keep_going -- -k)
  file(STRINGS "${BUILD}/${stage}/CMakeCache.txt" ninja REGEX "^CMAKE_GENERATOR:INTERNAL=Ninja")
  if(ninja)
    list(APPEND keep_going 0)
  endif()
  set(targets "")
  if(MATCH)
    include("${BUILD}/${stage}/test_targets.cmake")
    list(REMOVE_DUPLICATES targets)
    if(targets)
      list(PREPEND keep_going --target ${targets})
    endif()
  endif()
  set(ENV{NINJA_STATUS} "[${stage} ${number}/${count}: %f/%t, %e s of ${${stage}_fast}] ")
  set(result 0)
  if(targets OR NOT MATCH)
    xla_build("${BUILD}/${stage}" result ${keep_going})
  endif()
  unset(ENV{NINJA_STATUS})
  set(built true)
  if(NOT result EQUAL 0)
    set(built false)
    list(APPEND failed ${stage})
    message("==> ${stage} did not build whole")
  endif()
  # Catch2's own code, which takes a while: the first stage makes it for all.
  if(NOT catch AND EXISTS "${BUILD}/${stage}/tests/CMakeFiles/xla_test_catch.dir/main.cpp.o")
    set(catch "${BUILD}/${stage}/tests/CMakeFiles/xla_test_catch.dir/main.cpp.o")
  endif()
  string(TIMESTAMP ended %s)
  math(EXPR configure "${configured} - ${started}")
  math(EXPR build "${ended} - ${configured}")
  foreach(value IN ITEMS started configure build)
    string(APPEND times "set(${stage}_${value} ${${value}})\n")
  endforeach()
  foreach(budget IN ITEMS fast tests)
    string(APPEND times "set(${stage}_${budget} ${${stage}_${budget}})\n")
  endforeach()
  string(APPEND all "subdirs(\"${BUILD}/${stage}\")\n"
    "add_test(\"${stage}:builds\" \"${CMAKE_COMMAND}\" -E ${built})\n"
    "set_tests_properties(\"${stage}:builds\" PROPERTIES LABELS \"${label}\")\n")
endforeach()

file(WRITE "${BUILD}/times.cmake" "${times}")
string(TIMESTAMP ended %s)
math(EXPR since "${ended} - ${begin}")
xla_minutes(since ${since})
message("==> ${since} tests of ${names}")
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
file(REMOVE "${BUILD}/Testing/Temporary/LastTestsFailed.log" "${BUILD}/tests.xml")
execute_process(COMMAND "${bin}/ctest" --test-dir "${BUILD}" --parallel ${JOBS} --output-on-failure
    --no-tests=error --output-junit "${BUILD}/tests.xml" ${match}
  RESULT_VARIABLE result OUTPUT_VARIABLE output ECHO_OUTPUT_VARIABLE)
xla_report()
# How to run each alone that failed.
set(tests "")
if(NOT result EQUAL 0 AND EXISTS "${BUILD}/Testing/Temporary/LastTestsFailed.log")
  file(STRINGS "${BUILD}/Testing/Temporary/LastTestsFailed.log" tests)
endif()
foreach(test IN LISTS tests)
  string(REGEX REPLACE "^[0-9]+:" "" test "${test}")
  string(REGEX REPLACE ":.*" "" stage "${test}")
  message("==> again: cmake -DSTAGES=${stage} -DMATCH='^${test}$' -P cmake/test.cmake")
endforeach()
# ctest's own summary once more, so that it is what a run ends with.
string(REGEX MATCH "[0-9]+% tests passed[^\n]*" passed "${output}")
string(REGEX MATCH "Total Test time \\(real\\) = +[0-9.]+ sec" total "${output}")
execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "${passed}\n${total}")
if(failed OR NOT result EQUAL 0)
  message(FATAL_ERROR "the test failed")
endif()
