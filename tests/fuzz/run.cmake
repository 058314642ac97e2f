# SPDX-License-Identifier: Apache-2.0
# cmake [-DRUNS=<n>] [-DWORK=<folder>] -P tests/fuzz/run.cmake: clang's libFuzzer on the safetensors reader, with
# address and undefined sanitizers. It begins with corpus/ beside this file, inputs of at most 160 bytes that
# -set_cover_merge=1 -use_counters=0 kept of a longer run, and grows it in the folder from call to call.

cmake_minimum_required(VERSION 3.24)

get_filename_component(root "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
if(NOT RUNS)
  set(RUNS 1000000)
endif()
if(NOT WORK)
  set(WORK "${root}/build/fuzz")
endif()
find_path(eigen Eigen/Core PATHS /usr/include /usr/local/include PATH_SUFFIXES eigen3 REQUIRED)
find_program(compiler NAMES clang++-16 clang++ REQUIRED)
file(COPY "${CMAKE_CURRENT_LIST_DIR}/corpus" DESTINATION "${WORK}")
file(COPY "${root}/tests/data/reference.safetensors" DESTINATION "${WORK}/corpus")
execute_process(COMMAND "${compiler}" -std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined
    -fno-sanitize-recover=all "-I${root}/include" -isystem "${eigen}" "${root}/tests/fuzz/safetensors.cpp"
    -o "${WORK}/safetensors"
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${WORK}/safetensors" -runs=${RUNS} -max_len=4096 -rss_limit_mb=1024
    -print_final_stats=1 "-dict=${CMAKE_CURRENT_LIST_DIR}/safetensors.dict"
    "-artifact_prefix=${WORK}/" "${WORK}/corpus"
  COMMAND_ERROR_IS_FATAL ANY)
