# SPDX-License-Identifier: Apache-2.0
# Looks for errors that the tests do not find, until the time is over or something fails:
#   cmake [-DMINUTES=<n>] [-DSEED=<n>] -P tests/attack.cmake
# Each round has random numbers of its own. It runs the tests labelled "attack" and "faults" with g++; those labelled
# "attack" also under the address and undefined sanitizers, and the tests of threads under the thread sanitizer. They
# are random programs in every mode, failing allocations, threads, killed writers and killed ranks of MPI. Then it runs
# a training whose ranks are killed, and the fuzzer of file readers. It prints the seed of a round that fails; SEED=<n>
# begins with that round. MINUTES is 60 by default.

cmake_minimum_required(VERSION 3.24)

include("${CMAKE_CURRENT_LIST_DIR}/../cmake/bootstrap.cmake")
if(NOT MINUTES)
  set(MINUTES 60)
endif()
if(NOT SEED)
  string(RANDOM LENGTH 6 ALPHABET 123456789 SEED)
endif()
set(work "${XLA_ROOT}/build/attack")
xla_need(ninja-build:ninja g++:g++ clang-16:clang++-16 libclang-rt-16-dev libeigen3-dev libboost-dev catch2
  nlohmann-json3-dev libcli11-dev libopenmpi-dev openmpi-bin libmpich-dev mpich)

set(sanitizer "-O1 -g1 -fno-omit-frame-pointer")
set(gcc_flags "-O1")
set(asan_flags "${sanitizer} -fsanitize=address,undefined -fno-sanitize-recover=all")
set(tsan_flags "${sanitizer} -fsanitize=thread")
set(launcher "")
execute_process(COMMAND setarch -R true RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
if(result EQUAL 0)  # see cmake/test.cmake
  set(launcher "setarch\\;-R")
endif()
get_filename_component(bin "${CMAKE_COMMAND}" DIRECTORY)

# Builds and runs the tests of one kind with this round's seed.
function(attack_with kind label)
  set(compiler clang++-16)
  if(kind STREQUAL "gcc")
    set(compiler g++)
  endif()
  xla_configure("${work}/${kind}" -DCMAKE_CXX_COMPILER=${compiler} "-DCMAKE_CXX_FLAGS=${${kind}_flags}"
    -DCMAKE_BUILD_TYPE= -DXLA_BUILD_TESTS=ON -DXLA_BUILD_EXAMPLES=OFF "-DXLA_TEST_ONLY=${label}"
    -DXLA_TEST_SEED=${SEED} "-DXLA_TEST_LAUNCHER=${launcher}")
  xla_build("${work}/${kind}" result)
  if(result EQUAL 0)
    execute_process(COMMAND "${bin}/ctest" --test-dir "${work}/${kind}" --output-on-failure --no-tests=error
      RESULT_VARIABLE result)
  endif()
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${kind} failed; again: cmake -DSEED=${SEED} -P tests/attack.cmake")
  endif()
endfunction()

# A training whose ranks are killed, 30 times, and goes on each time from its checkpoint.
function(attack_training)
  set(build "${work}/training")
  xla_configure("${build}" -DCMAKE_CXX_COMPILER=g++ "-DCMAKE_CXX_FLAGS=${gcc_flags}" -DCMAKE_BUILD_TYPE=
    -DXLA_BUILD_TESTS=OFF -DXLA_BUILD_EXAMPLES=ON)
  xla_build("${build}" result --target train_decoder)
  if(result EQUAL 0)
    file(STRINGS "${build}/CMakeCache.txt" mpirun REGEX "^MPIEXEC_EXECUTABLE:")
    string(REGEX REPLACE "^[^=]*=" "" mpirun "${mpirun}")
    execute_process(COMMAND "${CMAKE_COMMAND}" -DCASE=killed "-DPROGRAM=${build}/examples/train_decoder"
        "-DFOLDER=${build}" "-DMPIRUN=${mpirun}" -DKILLS=30 -DSEED=${SEED}
        -P "${XLA_ROOT}/examples/train_decoder/test.cmake"
      RESULT_VARIABLE result)
  endif()
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "the training failed; again: cmake -DSEED=${SEED} -P tests/attack.cmake")
  endif()
endfunction()

string(TIMESTAMP begin %s)
set(round 0)
while(TRUE)
  math(EXPR round "${round} + 1")
  message("==> round ${round}, seed ${SEED}")
  attack_with(gcc "attack;faults")
  attack_with(asan attack)
  attack_with(tsan threads)
  attack_training()
  execute_process(COMMAND "${CMAKE_COMMAND}" -DRUNS=300000 "-DWORK=${work}/fuzz"
      -P "${CMAKE_CURRENT_LIST_DIR}/fuzz/run.cmake"
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "the fuzzer failed; an input that it found would lie in ${work}/fuzz")
  endif()
  math(EXPR SEED "${SEED} + 1000")
  string(TIMESTAMP now %s)
  math(EXPR minutes "(${now} - ${begin}) / 60")
  message("==> ${round} rounds in ${minutes} minutes, nothing found")
  if(minutes GREATER_EQUAL MINUTES)
    break()
  endif()
endwhile()
