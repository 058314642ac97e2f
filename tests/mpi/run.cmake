# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=<tests/mpi/program.cpp, built> [-DTRAINING=<training.cpp>] -DMPIRUN=<their launcher> -DWORK=<folder>
#   [-DSEED=<n>] -P run.cmake
# Worlds of processes: what they exchange, and that all of them end with a sentence when one fails or is killed,
# also where the launcher does not clean up. With a seed also 30 kills at random times.

cmake_minimum_required(VERSION 3.24)

execute_process(COMMAND "${MPIRUN}" --version OUTPUT_VARIABLE version ERROR_VARIABLE version)
if(version MATCHES "Open MPI|OpenRTE")
  set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
  set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
  set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
  set(survive --enable-recovery)
  set(orphans orphans)
else()
  # Hydra kills the process groups of the survivors, whatever its options: programs have others.
  set(survive -disable-auto-cleanup)
  set(apart setsid -w)
  set(orphans dies)  # for whom it would wait
endif()
# Open MPI's sockets have names as long as this.
set(ENV{TMPDIR} /tmp)

# Runs this many ranks; said_<rank> is what each has said at its end, for which the launcher may not have waited.
macro(launch ranks)
  file(REMOVE_RECURSE "${WORK}")
  file(MAKE_DIRECTORY "${WORK}")
  execute_process(COMMAND "${MPIRUN}" ${survive} -n ${ranks} ${apart} "${PROGRAM}" "${WORK}" ${ARGN}
    TIMEOUT 60 RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  math(EXPR last "${ranks} - 1")
  foreach(rank RANGE ${last})
    set(said_${rank} "nothing")
    set(waits 0)
    while(NOT EXISTS "${WORK}/${rank}" AND NOT rank STREQUAL "${dead}" AND waits LESS 100)
      execute_process(COMMAND "${CMAKE_COMMAND}" -E sleep 0.1)
      math(EXPR waits "${waits} + 1")
    endwhile()
    if(EXISTS "${WORK}/${rank}")
      file(READ "${WORK}/${rank}" said_${rank})
      string(STRIP "${said_${rank}}" said_${rank})
    endif()
  endforeach()
endmacro()
function(expect rank pattern)
  if(NOT said_${rank} MATCHES "^${pattern}$")
    message("the launcher (${result}): ${output}")
    message(FATAL_ERROR "rank ${rank} said “${said_${rank}}”, and not “${pattern}”: ${ARGN}")
  endif()
endfunction()

# A case, and the devices of each rank.
foreach(case IN ITEMS
    "exchanges;1;1" "exchanges;1;1;1;1;1;1;1;1;1" "exchanges;1;2;3" "serialized;2;2" "fast;2;2" "idle;1;1")
  list(LENGTH case ranks)
  math(EXPR ranks "${ranks} - 1")
  launch(${ranks} ${case})
  foreach(rank RANGE ${last})
    expect(${rank} "as it should be" ${case})
  endforeach()
endforeach()

# Four replicas end with the same bits, whatever they are: threads, processes, or both.
if(TRAINING)
  set(tests "${PROGRAM}")
  set(PROGRAM "${TRAINING}")
  set(bits "[0-9]+")
  foreach(ranks IN ITEMS 1 2 4)
    math(EXPR devices "4 / ${ranks}")
    string(REPEAT "= " ${devices} equal)
    launch(${ranks} ${devices})
    foreach(rank RANGE ${last})
      expect(${rank} "${ranks} ranks: ${equal}${bits}" training on ${devices} devices)
      string(REGEX MATCH "[0-9]+$" bits "${said_${rank}}")
    endforeach()
  endforeach()
  set(PROGRAM "${tests}")
endif()

set(reduces "all_reduce \\(mean\\) of 1000 float32, exchange [0-9]+ of its process")
function(expect_others rank pattern)
  foreach(other RANGE ${last})
    if(NOT other EQUAL rank)
      expect(${other} "${pattern}" ${ARGN})
    endif()
  endforeach()
endfunction()

launch(4 throws 1 0)
expect(1 "no more paper")
expect_others(1 "replica 1 of 4: no more paper")

launch(4 differs 3 0)
expect_others(-1 "replica 3 of 4: is at all_reduce \\(mean\\) of 3000 float32, and replica 0 at all_reduce.*")

launch(4 leaves 2 0)
expect(2 "came to its end")
expect_others(2 "replica 2 of 4: rank 2 has come to its end, where replica [0-3] waits in ${reduces}")

launch(4 late 0 0.3)
expect_others(-1 "replica [1-3] of 4: waited 0.3 s in ${reduces}, for rank 0")

# killed(<rank> <seconds> <how>): by kill -9, so long after it has begun. All others end within ten seconds of that.
function(killed rank seconds how)
  set(dead ${rank})
  launch(4 ${how} ${rank} ${seconds})
  expect(${rank} nothing killed)
  foreach(other RANGE ${last})
    if(NOT other EQUAL rank)
      expect(${other} "replica ${rank} of 4: rank ${rank} has died: the system closed its connections.*"
        "rank ${rank} killed after ${seconds} s")
      file(TIMESTAMP "${WORK}/killed" death "%s" UTC)
      file(TIMESTAMP "${WORK}/${other}" end "%s" UTC)
      math(EXPR took "${end} - ${death}")
      if(took GREATER 10)
        message(FATAL_ERROR "rank ${other} ended ${took} s after rank ${rank} was killed")
      endif()
    endif()
  endforeach()
endfunction()
killed(0 0.05 dies)
killed(2 0.1 ${orphans})
if(SEED)
  string(RANDOM LENGTH 1 RANDOM_SEED ${SEED} _)
  foreach(kill RANGE 1 30)
    string(RANDOM LENGTH 1 ALPHABET 0123 rank)
    string(RANDOM LENGTH 3 ALPHABET 0123456789 milliseconds)
    killed(${rank} 0.${milliseconds} dies)
  endforeach()
endif()
