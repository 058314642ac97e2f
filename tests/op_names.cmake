# SPDX-License-Identifier: Apache-2.0

# op_names(<output> <root>): all ops of the catalogue.
function(op_names output root)
  file(READ "${root}/include/xla/op/list.hpp" list)
  string(REGEX MATCHALL "X\\(xla::op::[a-z_0-9]+, " names "${list}")
  list(TRANSFORM names REPLACE "X\\(xla::op::([a-z_0-9]+), " "\\1")
  list(LENGTH names count)
  if(count LESS 70)
    message(FATAL_ERROR "op/list.hpp has no list of ops: ${count} were found")
  endif()
  set("${output}" "${names}" PARENT_SCOPE)
endfunction()
