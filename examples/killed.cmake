# SPDX-License-Identifier: Apache-2.0
# For the tests of programs that train.

# train_with_kills(<whole> <checkpoint> <milliseconds> <program> <argument>...): a training that is killed again and
# again, first after about so many milliseconds, and each time goes on from its checkpoint, ends with the file that one
# without kills has written.
function(train_with_kills whole checkpoint first program)
  get_filename_component(name "${program}" NAME_WE)
  set(result killed)
  set(kills 0)
  foreach(turn RANGE 1 200)
    set(resume "")
    if(EXISTS "${checkpoint}")
      set(resume --resume "${checkpoint}")
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
  file(SHA256 "${whole}" expected)
  file(SHA256 "${checkpoint}" found)
  message("${kills} kills")
  if(kills EQUAL 0)
    message(FATAL_ERROR "it was never killed")
  elseif(NOT result EQUAL 0 OR NOT found STREQUAL expected)
    message(FATAL_ERROR "ended with ${result}; another checkpoint than without kills\n${output}")
  endif()
endfunction()
