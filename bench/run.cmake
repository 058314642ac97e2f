# SPDX-License-Identifier: Apache-2.0
# All benchmarks: cmake -P bench/run.cmake
#   -DPARTS="mlp;decoder;decoder_char;generate;convnet;resnet18;resnet18_read;memory;build;capture;overhead;specialise;trips;loops;traced;fused;rows;gemm;products;epilogue;attention;models;reading;conv;sequences;scanned;replicas;backends;parity;binary"   only these; README.md has more
#   -DROUNDS=<n>           rounds of the contests at most, 21 unless given
#   -DTHREADS="1;2"        numbers of threads
#   -DPYTHON=<python>      an interpreter that has torch, torchvision and jax, instead of installing them
#   -DPEERS=OFF            without PyTorch and JAX
#   -DLOADED=ON            contests on a loaded machine: every round counts
#   -DAGAINST=<commit>     what the part `build` is compared with
#   -DBUILD=<folder>       default build/bench
# Options are before -P. Results: a table here, results.json and *.svg in the build folder.

include("${CMAKE_CURRENT_LIST_DIR}/../cmake/bootstrap.cmake")
if(NOT BUILD)
  set(BUILD "${XLA_ROOT}/build/bench")
endif()
get_filename_component(BUILD "${BUILD}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
if(NOT PARTS)
  set(PARTS mlp decoder decoder_char generate convnet resnet18 resnet18_read memory build capture
    overhead specialise trips loops traced fused rows gemm products epilogue attention conv sequences scanned
    replicas backends parity binary)
endif()
if(NOT ROUNDS)
  set(ROUNDS 21)
endif()
if(NOT THREADS)
  set(THREADS 1 2)
endif()
if(NOT DEFINED PEERS)
  set(PEERS ON)
endif()

xla_need(ninja-build:ninja g++:g++ libeigen3-dev libboost-dev python3:python3)
if("replicas" IN_LIST PARTS)
  xla_need(OPTIONAL libopenmpi-dev openmpi-bin)
endif()
if("backends" IN_LIST PARTS AND NOT DEFINED ENV{XLA_PJRT_PLUGIN})
  xla_need_plugin("${BUILD}")
endif()
find_program(python3 python3 REQUIRED)

set(contests mlp decoder decoder_autocast decoder_char decoder_seed generate convnet resnet18 resnet18_read
  memory models models_autocast reading products attention conv sequences replicas backends)
set(contested OFF)
foreach(part IN LISTS PARTS)
  if(part IN_LIST contests)
    set(contested ON)
  endif()
endforeach()

# The peers live in the build's folder; without a network the contest is between our own modes.
set(peers "")
if(PYTHON)
  set(peers "${PYTHON}")
elseif(PEERS AND contested)
  set(venv "${BUILD}/peers")
  # The mark is the list of what is installed: another list is installed again.
  set(wanted "${CMAKE_CURRENT_LIST_DIR}/peers/requirements.txt")
  set(mark "${venv}/installed.txt")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E compare_files "${wanted}" "${mark}"
    RESULT_VARIABLE differs ERROR_QUIET)
  if(differs)
    message("==> installing PyTorch and JAX into ${venv}")
    execute_process(COMMAND "${python3}" -m venv "${venv}" RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
      xla_need(python3-venv)
      execute_process(COMMAND "${python3}" -m venv --clear "${venv}" RESULT_VARIABLE result)
    endif()
    if(result EQUAL 0)
      set(pip "${venv}/bin/pip" install --quiet --disable-pip-version-check)
      execute_process(COMMAND ${pip} -r "${wanted}" RESULT_VARIABLE result)
    endif()
    if(result EQUAL 0)
      file(COPY_FILE "${wanted}" "${mark}")
    endif()
  endif()
  if(EXISTS "${mark}")
    set(peers "${venv}/bin/python")
  else()
    message("==> PyTorch and JAX could not be installed: the contests are held without them")
  endif()
endif()

# xla_bench_configure(<name> <compiler>): one build folder for each compiler.
function(xla_bench_configure name compiler)
  xla_configure("${BUILD}/${name}" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=${compiler}"
    -DCMAKE_CXX_FLAGS=-march=native "-DCMAKE_CXX_FLAGS_RELEASE=-O3 -DNDEBUG"
    -DXLA_BUILD_TESTS=OFF -DXLA_BUILD_EXAMPLES=${examples} -DXLA_BUILD_BENCH=ON)
endfunction()

if("binary" IN_LIST PARTS)
  xla_need(libcli11-dev nlohmann-json3-dev)
  set(examples ON)
else()
  set(examples OFF)
endif()
xla_bench_configure(gcc g++)
set(flags "${BUILD}/gcc/bench/capture.flags")
find_program(clang clang++-16)
if(clang AND ("capture" IN_LIST PARTS OR "build" IN_LIST PARTS))
  xla_bench_configure(clang "${clang}")
  list(APPEND flags "${BUILD}/clang/bench/capture.flags")
endif()
set(targets bench_peak bench_mkl)
foreach(part IN LISTS PARTS)
  if(part STREQUAL "memory")
    list(APPEND targets bench_heap bench_decoder bench_resnet18)
  elseif(part STREQUAL "attention")
    list(APPEND targets bench_heap bench_attention)
  elseif(part STREQUAL "models")
    list(APPEND targets bench_heap bench_models)
  elseif(part STREQUAL "scanned")
    list(APPEND targets bench_scanned)
  elseif(part STREQUAL "reading")
    list(APPEND targets bench_models bench_readings)
  elseif(part STREQUAL "models_autocast")
    list(APPEND targets bench_resnet50_autocast bench_vit_autocast)
  elseif(part STREQUAL "backends")
    list(APPEND targets bench_backend_programs)
  elseif(part STREQUAL "replicas")
    list(APPEND targets bench_replicas bench_exchange)
  elseif(part STREQUAL "binary")
    list(APPEND targets train_decoder)
  elseif(NOT part STREQUAL "capture" AND NOT part STREQUAL "build")
    list(APPEND targets bench_${part})
  endif()
endforeach()
set(JOBS 1)  # the largest takes a gigabyte
xla_build("${BUILD}/gcc" result --target ${targets})
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the benchmarks do not build")
endif()

set(arguments --programs "${BUILD}/gcc/bench" --out "${BUILD}" --parts ${PARTS} --rounds ${ROUNDS}
  --threads ${THREADS}
  --binary "${BUILD}/gcc/examples/train_decoder" --flags ${flags})
set(command "cmake -DPARTS=\"${PARTS}\" -DROUNDS=${ROUNDS} -DTHREADS=\"${THREADS}\"")  # for results.json
foreach(option IN ITEMS PEERS LOADED)
  if(${option})
    string(APPEND command " -D${option}=ON")
  endif()
endforeach()
string(REPLACE ";" "\\;" command "${command}")  # one argument
list(APPEND arguments "--command=${command} -P bench/run.cmake")
if(peers)
  list(APPEND arguments --peers "${peers}")
endif()
if(LOADED)
  list(APPEND arguments --every-round)
endif()
if(AGAINST)
  set(other "${BUILD}/against")
  if(NOT EXISTS "${other}")
    execute_process(COMMAND git -C "${XLA_ROOT}" worktree add --detach "${other}" COMMAND_ERROR_IS_FATAL ANY)
  endif()
  execute_process(COMMAND git -C "${other}" checkout --quiet --detach "${AGAINST}" COMMAND_ERROR_IS_FATAL ANY)
  list(APPEND arguments --against "${other}")
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" -E env PYTHONDONTWRITEBYTECODE=1
    "${python3}" "${CMAKE_CURRENT_LIST_DIR}/run.py" ${arguments}
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the benchmarks failed")
endif()
