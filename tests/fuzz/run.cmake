# SPDX-License-Identifier: Apache-2.0
# cmake [-DRUNS=<n>] [-DWORK=<folder>] -P tests/fuzz/run.cmake: clang's libFuzzer on the readers of safetensors and of
# pictures, with address and undefined sanitizers. It begins with the folders corpus/ and pictures/, and adds its
# findings to copies of them in the work folder, from call to call. The corpus has inputs of at most 160 bytes that
# -set_cover_merge=1 -use_counters=0 kept of a longer run; the pictures are PNG and JPEG files of every kind, made by
# Pillow.

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
file(COPY "${CMAKE_CURRENT_LIST_DIR}/corpus" "${CMAKE_CURRENT_LIST_DIR}/pictures" DESTINATION "${WORK}")
file(COPY "${root}/tests/data/reference.safetensors" DESTINATION "${WORK}/corpus")

# fuzz(<name> <corpus> [<option of the fuzzer or library>...])
function(fuzz name corpus)
  set(libraries ${ARGN})
  list(FILTER libraries INCLUDE REGEX "^-l")
  set(options ${ARGN})
  list(FILTER options EXCLUDE REGEX "^-l")
  execute_process(COMMAND "${compiler}" -std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined
      -fno-sanitize-recover=all "-I${root}/include" -isystem "${eigen}" "${root}/tests/fuzz/${name}.cpp"
      -o "${WORK}/${name}" ${libraries}
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${WORK}/${name}" -runs=${RUNS} -max_len=4096 -rss_limit_mb=1024
      -print_final_stats=1 "-artifact_prefix=${WORK}/" ${options} "${WORK}/${corpus}"
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()
fuzz(safetensors corpus "-dict=${CMAKE_CURRENT_LIST_DIR}/safetensors.dict")
find_path(png png.h PATHS /usr/include /usr/local/include)
find_path(jpeg jpeglib.h PATHS /usr/include /usr/local/include)
if(png AND jpeg)
  fuzz(image pictures -lpng -ljpeg)
else()
  message("==> without the reader of pictures, as libpng or libjpeg is not there")
endif()
