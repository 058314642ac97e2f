# SPDX-License-Identifier: Apache-2.0
# For the tests of programs that train.

# train_with_kills(<whole> <checkpoint> <milliseconds> <program> <argument>...): a training is killed again and again,
# first after about this many milliseconds. Each time it continues from its checkpoint, then also with the options
# `resume_with`. It must end with the same file as a training without kills.
function(train_with_kills whole checkpoint first program)
  get_filename_component(name "${program}" NAME_WE)
  set(result killed)
  set(kills 0)
  foreach(turn RANGE 1 200)
    set(resume "")
    if(EXISTS "${checkpoint}")
      set(resume --resume "${checkpoint}" ${resume_with})
    endif()
    math(EXPR milliseconds "${first} + 37 * ${turn} % 300 + 5 * ${turn}")
    math(EXPR seconds "${milliseconds} / 1000")
    math(EXPR rest "${milliseconds} % 1000 + 1000")
    string(SUBSTRING "${rest}" 1 3 rest)
    execute_process(COMMAND timeout -s KILL ${seconds}.${rest} "${program}" ${ARGN}
        --save-every 1 --checkpoint "${checkpoint}" ${resume}
      RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(result EQUAL 0)
      break()
    elseif(output MATCHES "${name}: ")
      message(FATAL_ERROR "${output}")
    endif()
    math(EXPR kills "${kills} + 1")
  endforeach()
  message("${kills} kills")
  if(kills EQUAL 0)
    message(FATAL_ERROR "it was never killed")
  endif()
  expect_whole(${result})
endfunction()

# That a training has ended well and with the checkpoint of one without kills; `output` is what it has said.
macro(expect_whole result)
  file(SHA256 "${whole}" expected_hash)
  file(SHA256 "${checkpoint}" found_hash)
  if(NOT "${result}" STREQUAL "0" OR NOT found_hash STREQUAL expected_hash)
    message(FATAL_ERROR "ended with ${result}; another checkpoint than without kills\n${output}")
  endif()
endmacro()

# train_and_kill(<output> <victim> <seconds> <folder> <command>...): runs a training, most often by a launcher of ranks, and
# kills a rank of it by kill -9, or of "all" each and the launcher, so long after its first step. The ranks, which this
# starts by `ranks_begin`, leave their numbers in the folder. Sets <output> to what it has said, and to nothing where it
# came to its end before.
set(ranks_begin sh -c [=[echo $$ >"$0/rank.${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" && exec "$@"]=])
set(kill_script [=[
victim=$1 seconds=$2 folder=$3
shift 3
rm -rf "$folder" && mkdir -p "$folder"
# What Open MPI cannot clean up. Its sockets have names as long as this.
TMPDIR=$(mktemp -d /tmp/xla.XXXXXX)
export TMPDIR OMPI_MCA_btl_vader_backing_directory="$TMPDIR"
trap 'rm -rf "$TMPDIR"' EXIT
"$@" >"$folder/said" 2>&1 &
launcher=$!
until grep -q 'step: ' "$folder/said"; do
  if ! kill -0 $launcher; then
    wait $launcher
    exit
  fi
  sleep 0.05
done
sleep "$seconds"
if [ "$victim" = all ]; then
  kill -9 $launcher
  kill -9 $(cat "$folder"/rank.*)
else
  kill -9 $(cat "$folder/rank.$victim")
fi
wait $launcher
]=])
function(train_and_kill out victim seconds folder)
  execute_process(COMMAND sh -c "${kill_script}" sh ${victim} ${seconds} "${folder}" ${ARGN}
    TIMEOUT 120 RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  file(READ "${folder}/said" said)
  if(result EQUAL 0)
    set(said "")
  elseif(NOT said MATCHES "step: ")
    message(FATAL_ERROR "it ended with ${result} before its first step:\n${said}")
  endif()
  set(${out} "${said}" PARENT_SCOPE)
endfunction()
