# SPDX-License-Identifier: Apache-2.0
# Programs under mpirun: with the MPI that CMake has found, and with Debian's MPICH.

function(xla_mpi_program name source library)
  add_executable(test_mpi_${name} ${source})
  target_link_libraries(test_mpi_${name} PRIVATE xla_dev xla_dev_runtime ${library})
  target_include_directories(test_mpi_${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_compile_options(test_mpi_${name} PRIVATE ${test_flags})
endfunction()

# xla_mpi_test(<name> <launcher> <target with its flags> <option of run.cmake>...)
function(xla_mpi_test name launcher library)
  xla_mpi_program(${name} mpi/program.cpp ${library})
  xla_script_test(mpi/${name} LABELS faults
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:test_mpi_${name}> -DMPIRUN=${launcher}
            -DWORK=${CMAKE_CURRENT_BINARY_DIR}/mpi/${name} -DSEED=${XLA_TEST_SEED} ${ARGN}
            -P ${CMAKE_CURRENT_SOURCE_DIR}/mpi/run.cmake)
endfunction()

set_property(GLOBAL APPEND PROPERTY XLA_TEST_SOURCES mpi/program.cpp mpi/training.cpp)
xla_test_wanted(wanted faults)
if(NOT wanted)
  return()
endif()
if(TARGET xla::mpi AND MPIEXEC_EXECUTABLE)
  xla_mpi_program(training mpi/training.cpp xla::mpi)
  xla_mpi_test(found "${MPIEXEC_EXECUTABLE}" xla::mpi -DTRAINING=$<TARGET_FILE:test_mpi_training>)
else()
  xla_skipped_test(mpi/found xla::mpi "its launcher")
endif()
find_program(XLA_TEST_MPICH_CXX mpicxx.mpich)
find_program(XLA_TEST_MPICH_RUN mpiexec.mpich)
if(XLA_TEST_MPICH_CXX AND XLA_TEST_MPICH_RUN)
  execute_process(COMMAND "${XLA_TEST_MPICH_CXX}" -show OUTPUT_VARIABLE flags)
  string(REGEX MATCH "-I([^ ]+)" _ "${flags}")
  add_library(xla_test_mpich INTERFACE)
  target_include_directories(xla_test_mpich SYSTEM INTERFACE "${CMAKE_MATCH_1}")
  target_link_libraries(xla_test_mpich INTERFACE mpich)
  xla_mpi_test(mpich "${XLA_TEST_MPICH_RUN}" xla_test_mpich)
else()
  xla_skipped_test(mpi/mpich mpicxx.mpich mpiexec.mpich)
endif()
