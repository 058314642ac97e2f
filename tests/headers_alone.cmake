# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone: -DROOT -DFLAGS_FILE -DCOMPILER -DWORK. A source includes a chain of headers, each
# of which begins by including the one before, itself or by a header that it includes: so nothing stands before a
# header that it does not bring itself.
# So does the source that a target of the package gives programs, without the run time in a library.

cmake_minimum_required(VERSION 3.24)
include("${ROOT}/cmake/headers.cmake")
file(STRINGS "${FLAGS_FILE}" flags)
list(APPEND flags -Wno-ignored-attributes)  # in a precompiled header the library's pragma against that is forgotten
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

# Headers that many others include, from few to many lines of text: g++ reads each of them once, and takes the last one
# that a chain's headers all include.
set(bases xla/base/error.hpp xla/kernel/simd/packet.hpp xla/op/op.hpp xla/kernel/fused/region.hpp xla/run/trace/runtime.hpp)
foreach(base IN LISTS bases)
  if(NOT base IN_LIST XLA_HEADERS)
    message(FATAL_ERROR "cmake/headers.cmake has no ${base}")
  endif()
endforeach()

# What each includes before its first declaration; namespaces without any may stand before.
set(before "^#(include|pragma|if XLA_KERNELS_HERE)|^namespace [a-z]+ {(})?$")
foreach(header IN LISTS XLA_HEADERS)
  set("below-${header}" "")
  file(STRINGS "${ROOT}/include/${header}" lines REGEX "^(#|[A-Za-z])")
  foreach(line IN LISTS lines)
    if(line MATCHES "^#include [\"<](xla/[^\">]+)")
      list(APPEND "below-${header}" "${CMAKE_MATCH_1}")
    elseif(NOT line MATCHES "${before}")
      break()
    endif()
  endforeach()
endforeach()

# All headers that lie under this one, how many of them below each other, and the last of the bases among them.
function(look_under header)
  get_property(known GLOBAL PROPERTY "depth of ${header}" SET)
  if(known)
    return()
  endif()
  set(under "")
  set(depth 0)
  foreach(below IN LISTS "below-${header}")
    look_under("${below}")
    get_property(under_below GLOBAL PROPERTY "under ${below}")
    list(APPEND under "${below}" ${under_below})
    get_property(of_below GLOBAL PROPERTY "depth of ${below}")
    if(of_below GREATER depth)
      set(depth ${of_below})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES under)
  set(base "")
  foreach(one IN LISTS bases)
    if(one STREQUAL header OR one IN_LIST under)
      set(base "${one}")
    endif()
  endforeach()
  math(EXPR depth "${depth} + 1")
  set_property(GLOBAL PROPERTY "under ${header}" ${under})
  set_property(GLOBAL PROPERTY "depth of ${header}" ${depth})
  set_property(GLOBAL PROPERTY "base of ${header}" "${base}")
endfunction()

# Chains from the top down, always to the deepest header on the same base that no chain has yet.
set(left "")
foreach(header IN LISTS XLA_HEADERS)
  look_under("${header}")
  get_property(depth GLOBAL PROPERTY "depth of ${header}")
  list(APPEND left "${depth} ${header}")
endforeach()
list(SORT left COMPARE NATURAL ORDER DESCENDING)
list(TRANSFORM left REPLACE "^[0-9]+ " "")
list(REMOVE_ITEM left ${bases})  # which are read alone for the others
set(sources "")
while(left)
  list(GET left 0 header)
  string(MAKE_C_IDENTIFIER "${header}" name)
  get_property(base GLOBAL PROPERTY "base of ${header}")
  set(source "")
  while(header)
    string(PREPEND source "#include <${header}>\n")
    list(REMOVE_ITEM left "${header}")
    get_property(under GLOBAL PROPERTY "under ${header}")
    set(header "")
    set(deepest 0)
    foreach(one IN LISTS under)
      get_property(depth GLOBAL PROPERTY "depth of ${one}")
      get_property(base_of_one GLOBAL PROPERTY "base of ${one}")
      if(depth GREATER deepest AND "${base_of_one}" STREQUAL "${base}" AND one IN_LIST left)
        set(deepest ${depth})
        set(header "${one}")
      endif()
    endforeach()
  endwhile()
  if(base)
    string(MAKE_C_IDENTIFIER "${base}" base)
    string(PREPEND source "#include \"${base}.hpp\"\n")
  endif()
  file(WRITE "${WORK}/${name}.cpp" "${source}")
  list(APPEND sources "${WORK}/${name}.cpp")
endwhile()
list(LENGTH XLA_HEADERS headers)
list(LENGTH sources count)
message(STATUS "${headers} headers in ${count} sources")

# What xla::pjrt gives a program, which tests build with the run time in a library.
file(WRITE "${WORK}/pjrt_backend.cpp" "#define XLA_EXTERN_PJRT 1\n#define XLA_BACKEND_GRAPHS 1\n"
  "#include \"${ROOT}/cmake/pjrt/backend.cpp\"\n")
list(PREPEND sources "${WORK}/pjrt_backend.cpp")

# Products by vdpbf16ps, which headers alone have only with AVX-512.
file(WRITE "${WORK}/avx512.cpp" [[
#include <xla/xla.hpp>
static_assert(XLA_HAS_DOT);
int main() {
  xla::eager_mode(true);
  const auto a = xla::ones<float>({2, 2});
  return static_cast<int>(xla::sum(xla::autocast(a, [&] { return matmul(a, a); })).item());
}
]])

set(headers "")
foreach(base IN LISTS bases)
  string(MAKE_C_IDENTIFIER "${base}" name)
  file(WRITE "${WORK}/${name}.hpp" "#include <${base}>\n")
  list(APPEND headers "${WORK}/${name}.hpp")
endforeach()
# One after the other, each begun anew.
execute_process(COMMAND "${COMPILER}" ${flags} -x c++-header ${headers} RESULT_VARIABLE failed)
execute_process(COMMAND "${COMPILER}" ${flags} -fsyntax-only ${sources} RESULT_VARIABLE failed_source)
cmake_host_system_information(RESULT processor QUERY OS_PLATFORM)
set(failed_wide 0)
if(processor MATCHES "x86_64|AMD64")
  execute_process(COMMAND "${COMPILER}" ${flags} -march=x86-64-v4 -fsyntax-only "${WORK}/avx512.cpp"
    RESULT_VARIABLE failed_wide)
endif()
file(GLOB precompiled "${WORK}/*.gch")
if(precompiled)
  file(REMOVE ${precompiled})  # they are large
endif()
if(failed OR failed_source OR failed_wide)
  message(FATAL_ERROR "these headers do not compile alone")
endif()
