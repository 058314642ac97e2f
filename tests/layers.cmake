# SPDX-License-Identifier: Apache-2.0
# cmake -DROOT=<repository> -P layers.cmake: a header includes headers of its own layer or of a lower one,
# without cycles, and declares no function that only a higher layer defines; intrinsics are in kernel/simd. -DDRAW=ON also draws include/xla/layers.svg.

cmake_minimum_required(VERSION 3.24)

set(layers      # the first pattern that matches a path below include/xla decides
  "^ext/=90"     # apart: no other layer may include it
  "^models/=85"  # what a program includes by name
  "^(xla|functions|passes|distributions|parallel).hpp$=80"
  "^parallel/=75"
  "^(nn|optim|data|io|train|distributions)/=70"
  "^(loop/|loop.hpp$)=67"
  "^(run/call/|compile.hpp$)=66"  # modules of run/, in an order of their own
  "^run/(profile|explain)[./]=65"
  "^run/trace/=64"
  "^run/backend/=63"
  "^run/execute/=62"
  "^run/plan/=61"
  "^run/world/=60"
  "^run/state/=59"
  "^kernel/=50"
  "^transform/=40"
  "^op/=30"
  "^(tensor.hpp$|module.hpp$|tensor/)=25"
  "^graph/=20"
  "^shape/=10"
  "^base/=0")
set(layer_texts  # of each number: what the picture calls it, and what it is
  "90=ext/=parts with a dependency of their own"
  "85=models/=networks of the literature, a file a family"
  "80=xla.hpp functions.hpp …=headers that collect others"
  "75=parallel/=training by several replicas"
  "70=nn/ optim/ data/ io/ train/ …=layers, optimizers, data sets, training loop"
  "67=loop/=scan, fori_loop, while_loop, cond"
  "66=compile.hpp run/call/=compile(fn): what a call binds, signatures"
  "65=run/profile/ run/explain/=what took how long, what ran when"
  "64=run/trace/=traced mode, backward() at run time"
  "63=run/backend/=the interface of backends, and the interpreter"
  "62=run/execute/=plans that run, eager mode"
  "61=run/plan/=a program and its sizes: storage, order, buckets"
  "60=run/world/=replicas that exchange elements"
  "59=run/state/=all that outlives a call"
  "50=kernel/=loops over packets of numbers, the gate to Eigen"
  "40=transform/=graph to program: capture, backward, passes"
  "30=op/=an op a file: shape rule, kernel, gradient"
  "25=tensor/=the handle, buffers, cells, trees of arguments"
  "20=graph/=nodes and their attributes"
  "10=shape/=sizes known or symbolic, broadcasting"
  "0=base/=text, errors, lists, the gate to Boost.Hana")
set(hana_gate "^base/")  # the only place that may include Boost.Hana
set(system_gate "^base/system/")  # the only folder that may include a header of the operating system
set(system_headers "[<\"](unistd|fcntl|pthread|sched|semaphore|signal|poll|dlfcn|link|malloc|ifaddrs|windows|winsock2|io|process|sys/[a-z]+|net[a-z]*/[a-z]+|arpa/[a-z]+)\\.h")
set(system_macros "defined\\((_WIN32|__linux__|__unix__|__APPLE__|__wasi__|__GLIBC__)\\)")
set(system_threads "#include <(mutex|shared_mutex|thread|condition_variable|future)>|[^:]std::(mutex|j?thread|this_thread|condition_variable|unique_lock|call_once)[^A-Za-z_0-9]")
set(extensions "__attribute__|__PRETTY_FUNCTION__|__builtin_(prefetch|unreachable|memcpy|[a-z]+_overflow)")  # of compilers, which belong to base/compiler.hpp
set(instruction_sets "^kernel/simd/(sse|avx|avx512|amx|neon)/")  # the only folders with intrinsics; one for each set
set(intrinsic "[^A-Za-z0-9_](_mm[0-9]*_|_tile_|__m(64|128|256|512|mask)|[a-z0-9]*intrin\\.h|arm_neon\\.h|asm[a-z ]*\\(\"[a-z])[^\n]*")
set(stateless "^(base|shape|graph|tensor|op|transform|kernel|run)/|^(tensor|module|compile).hpp$")
set(state_holders       # the only places there with objects that outlive a call:
  "^run/state/"       # contexts of the process, of devices and of threads
  "^kernel/threads/(pool|cores).hpp$" # the threads that the kernels of a device share
  "^kernel/gemm/packed_call.hpp$"       # which kernels a program has
  "^kernel/gemm/rounded_call.hpp$"      # likewise
  "^kernel/convolution/allow_winograd.hpp$" # whether kernels may use that algorithm
  "^base/system/per_thread.hpp$"  # what each thread has of its own for those below
  "^kernel/simd/bfloat16_support.hpp$" # how products at that precision are computed
  "^kernel/(memory/thread_scratch|gemm/scratch).hpp$"  # memory that each of them works in, kept for the next loop
  "^tensor/(heap|buffer).hpp$"      # memory that waits for the next tensor, and its counts
  "^base/fork.hpp$")  # what has to be at rest when the process forks

set(public_only "^(models|nn|optim|data|io|train|parallel|distributions)/")  # built from the public API
set(looks_inside      # of these, so far:
  "^nn/state_(dict|loader).hpp$")  # files of any element type, by the handles of tensors

set(declared_below    # functions that a header declares and a higher layer defines, so far:
  "op/info.hpp=propagate_layouts"       # what the descriptions of ops point to, which tables of those layers must contain
  "op/info.hpp=run_with_layouts"
  "op/info.hpp=run_recorded"
  "op/info.hpp=find_epilogues"
  "op/info.hpp=identify_plan"
  "op/info.hpp=find_buckets"
  "op/info.hpp=may_update"
  "op/info.hpp=put_input"
  "kernel/op/collectives.hpp=run_exchange"  # the kernel of an op, which is in the world's layer
  "tensor/scalar.hpp=held_as")       # a cast, which is an op
set(found_below "")

if(NOT ROOT)
  get_filename_component(ROOT "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
endif()
include("${ROOT}/cmake/headers.cmake")
include("${ROOT}/tests/layers_picture.cmake")
set(failed OFF)
macro(refuse)
  message("layers: " ${ARGN})
  set(failed ON)
endmacro()

function(layer_of path out)
  foreach(entry IN LISTS layers)
    string(REGEX MATCH "^(.*)=([0-9]+)$" _ "${entry}")
    set(pattern "${CMAKE_MATCH_1}")
    set(layer "${CMAKE_MATCH_2}")
    if(path MATCHES "${pattern}")
      set(${out} ${layer} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} none PARENT_SCOPE)
endfunction()

# xla_functions(<header> <text>): what it declares of functions of namespaces, and what it defines.
function(xla_functions header text)
  string(REGEX REPLACE "//[^\n]*|\\[\\[[^]]*\\]\\] ?" "" text "${text}")
  string(REPLACE ";" "@" text "${text}")  # which ends entries of lists, as brackets join them
  string(REGEX REPLACE "[][\\]" "" text "${text}")
  string(REGEX MATCHALL "\n[a-z][^\n@{}()#=]*[ *&][a-z_0-9]+\\([^@{}]*[@{]" functions "${text}")
  foreach(function IN LISTS functions)
    string(REGEX MATCH "^\n[^(]*[ *&]([a-z_0-9]+)\\(.*(.)$" _ "${function}")
    set(name "${CMAKE_MATCH_1}")
    if(CMAKE_MATCH_2 STREQUAL "{")
      set_property(GLOBAL APPEND PROPERTY "defines_${name}" ${header})
    elseif(NOT function MATCHES "^\n(extern|friend|template|using) " AND NOT name STREQUAL "requires")
      set_property(GLOBAL APPEND PROPERTY declarations "${header}=${name}")
    endif()
  endforeach()
endfunction()

file(GLOB_RECURSE headers RELATIVE "${ROOT}/include/xla" "${ROOT}/include/xla/*.hpp")
foreach(header IN LISTS headers)
  if(NOT "xla/${header}" IN_LIST XLA_HEADERS AND NOT "xla/${header}" IN_LIST XLA_EXT_HEADERS)
    refuse("${header} is not listed in cmake/headers.cmake")
  endif()
  layer_of(${header} layer)
  if(layer STREQUAL "none")
    refuse("${header} belongs to no layer")
  endif()

  set(file "${ROOT}/include/xla/${header}")
  file(STRINGS "${file}" first LIMIT_COUNT 1)
  if(NOT first STREQUAL "// SPDX-License-Identifier: Apache-2.0")
    refuse("${header} does not begin with the SPDX line")
  endif()
  file(READ "${file}" text)
  if(NOT text MATCHES "#pragma once\n\n// ")
    refuse("${header} does not say in its first lines what it is, what it is not, and who uses it")
  endif()
  xla_functions(${header} "${text}")
  string(REGEX MATCHALL "\n" lines "${text}")
  list(LENGTH lines count)
  if(count GREATER 500)
    message("layers: note: ${header} has ${count} lines; split it")
  endif()

  if(NOT header MATCHES "${instruction_sets}")
    if(text MATCHES "${intrinsic}")
      refuse("${header} has intrinsics, which belong to a folder of kernel/simd: ${CMAKE_MATCH_0}")
    endif()
  endif()

  if(NOT header MATCHES "${system_gate}")
    if(text MATCHES "#[ \t]*include ${system_headers}")
      refuse("${header} includes a header of the operating system, which belongs to base/system: ${CMAKE_MATCH_1}.h")
    elseif(text MATCHES "${system_macros}")
      refuse("${header} asks which system it is built for, which belongs to base/system: ${CMAKE_MATCH_1}")
    elseif(text MATCHES "${system_threads}")
      refuse("${header} needs threads, which base/system has as sys::, also where there are none: ${CMAKE_MATCH_0}")
    endif()
  endif()

  if(text MATCHES "${extensions}" AND NOT header MATCHES "^base/(compiler|system/.*).hpp$|^tensor/argument_mismatch.hpp$")
    string(REGEX MATCH "[^\n]*(${extensions})[^\n]*" line "${text}")
    refuse("${header} needs an extension of a compiler, which base/compiler.hpp has with a form for others: ${line}")
  endif()

  if(header MATCHES "${stateless}")
    set(allowed OFF)
    foreach(holder IN LISTS state_holders)
      if(header MATCHES "${holder}")
        set(allowed ON)
      endif()
    endforeach()
    # Up to a name and what it begins as, without the parenthesis of a function.
    file(STRINGS "${file}" objects
      REGEX "^[^/]*thread_local|^[^/]*(^|[ \t])(static|inline)[ \t][^()]*[A-Za-z0-9_]( =|{| {|;)")
    foreach(line IN LISTS objects)
      if(NOT allowed AND NOT line MATCHES "constexpr|inline const |inline namespace|operator")
        refuse("${header} keeps state, which belongs to run/state: ${line}")
      endif()
    endforeach()
  endif()

  set(allowed OFF)
  foreach(exception IN LISTS looks_inside)
    if(header MATCHES "${exception}")
      set(allowed ON)
    endif()
  endforeach()
  if(header MATCHES "${public_only}" AND NOT allowed)
    if(text MATCHES "[^\n]*xla::detail[^\n]*|namespace xla {\n+namespace detail")
      refuse("${header} looks inside: ${CMAKE_MATCH_0}")
    endif()
  endif()

  # A header of the run time may end with what defines it, which is on its layer and includes it in turn.
  set(definitions "")
  if(text MATCHES "\n#if XLA_(RUNTIME_HERE( && XLA_KERNELS_HERE)?|PASSES_HERE)\n(#include \"xla/[^#]*)+#endif\n$")
    string(REGEX MATCHALL "xla/[^\"]+" definitions "${CMAKE_MATCH_0}")
  endif()

  set(includes_of_${header} "")
  file(STRINGS "${file}" includes REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS includes)
    if(line MATCHES "<xla/([^>]+)>|\"xla/([^\"]+)\"")
      set(target "${CMAKE_MATCH_1}${CMAKE_MATCH_2}")
      layer_of(${target} below)
      if(NOT "xla/${target}" IN_LIST definitions)
        list(APPEND includes_of_${header} "${target}")
      elseif(NOT below EQUAL layer)
        refuse("${header} (layer ${layer}) ends with a definition on another layer: ${target} (layer ${below})")
      endif()
      if(NOT target IN_LIST headers)
        refuse("${header} includes ${target}, which is not there")
      elseif(below GREATER layer)
        refuse("${header} (layer ${layer}) includes ${target} (layer ${below})")
      endif()
    elseif(line MATCHES "include[ \t]*\"")
      refuse("${header}: write the path from xla/: ${line}")
    elseif(line MATCHES "<boost/hana" AND NOT header MATCHES "${hana_gate}")
      refuse("${header} includes Boost.Hana past its gate")
    endif()
  endforeach()
endforeach()

# Includes show which layer a header needs; so would a declaration of what a higher one defines, which hides it. Functions of
# namespaces by name: a template of which a higher layer has specializations is another thing.
get_property(declarations GLOBAL PROPERTY declarations)
list(REMOVE_DUPLICATES declarations)
foreach(declaration IN LISTS declarations)
  string(REGEX MATCH "^(.*)=(.*)$" _ "${declaration}")
  set(header "${CMAKE_MATCH_1}")
  set(name "${CMAKE_MATCH_2}")
  get_property(definitions GLOBAL PROPERTY "defines_${name}")
  layer_of(${header} layer)
  set(above "")
  foreach(definition IN LISTS definitions)
    layer_of(${definition} other)
    if(other GREATER layer)
      list(APPEND above ${definition})
    else()
      set(above "")
      break()
    endif()
  endforeach()
  if(above AND declaration IN_LIST declared_below)
    list(APPEND found_below "${declaration}")
  elseif(above)
    refuse("${header} (layer ${layer}) declares ${name}, which a higher one defines: ${above}")
  endif()
endforeach()
foreach(declaration IN LISTS declared_below)
  if(NOT declaration IN_LIST found_below)
    refuse("declared_below has ${declaration}, which is no longer so: take it out")
  endif()
endforeach()

file(GLOB_RECURSE examples "${ROOT}/examples/*.[ch]pp")
foreach(example IN LISTS examples)
  file(STRINGS "${example}" inside REGEX "detail::")
  if(inside)
    refuse("${example} looks inside: ${inside}")
  endif()
endforeach()

foreach(header IN LISTS XLA_HEADERS XLA_EXT_HEADERS)
  if(NOT EXISTS "${ROOT}/include/${header}")
    refuse("${header} is listed, but is not there")
  endif()
endforeach()

# Cycles: take away, again and again, what includes nothing that is left.
set(left ${headers})
set(before -1)
list(LENGTH left now)
while(NOT now EQUAL before)
  set(before ${now})
  foreach(header IN LISTS left)
    set(waits OFF)
    foreach(target IN LISTS includes_of_${header})
      if(target IN_LIST left)
        set(waits ON)
        break()
      endif()
    endforeach()
    if(NOT waits)
      list(REMOVE_ITEM left "${header}")
    endif()
  endforeach()
  list(LENGTH left now)
endwhile()
if(left)
  list(JOIN left ", " names)
  refuse("a cycle of includes among or below: ${names}")
endif()

# The picture has each layer, and is what these lists draw.
list(TRANSFORM layers REPLACE "^.*=" "" OUTPUT_VARIABLE numbers)
list(TRANSFORM layer_texts REPLACE "=.*$" "" OUTPUT_VARIABLE drawn)
if(NOT numbers STREQUAL drawn)
  refuse("layer_texts has not the numbers of layers, in their order: ${drawn}")
endif()
xla_layers_picture(picture ${layer_texts})
set(file "${ROOT}/include/xla/layers.svg")
set(before "")
if(DRAW)
  file(WRITE "${file}" "${picture}")
endif()
if(EXISTS "${file}")
  file(READ "${file}" before)
endif()
if(NOT picture STREQUAL before)
  refuse("include/xla/layers.svg is another picture: cmake -DDRAW=ON -P tests/layers.cmake draws it")
endif()

list(LENGTH headers count)
if(failed)
  message(FATAL_ERROR "layers: refused")
elseif(count EQUAL 0)
  message(FATAL_ERROR "layers: no headers below ${ROOT}/include/xla")
endif()
message("layers: ${count} headers in order")
