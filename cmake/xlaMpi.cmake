# SPDX-License-Identifier: Apache-2.0
# xla::mpi: xla::xla with MPI, for worlds of many processes; absent where that is. Which of several MPIs it is, is
# given as FindMPI documents; of Debian's two: -DMPI_EXECUTABLE_SUFFIX=.openmpi or .mpich.

if(NOT TARGET xla::mpi)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET GLOBAL COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    add_library(xla::mpi INTERFACE IMPORTED GLOBAL)
    target_link_libraries(xla::mpi INTERFACE xla::xla MPI::MPI_CXX)
    target_compile_definitions(xla::mpi INTERFACE XLA_HAS_MPI=1)
  endif()
endif()
