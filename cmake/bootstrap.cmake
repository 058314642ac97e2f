# SPDX-License-Identifier: Apache-2.0
# Shared by test.cmake and train.cmake: from a bare Debian with a compiler and CMake to a configured build.

cmake_minimum_required(VERSION 3.24)
get_filename_component(XLA_ROOT "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)

# Two jobs: a translation unit that compiles a big step takes a gigabyte.
if(NOT JOBS)
  cmake_host_system_information(RESULT JOBS QUERY NUMBER_OF_LOGICAL_CORES)
  if(JOBS GREATER 2)
    set(JOBS 2)
  endif()
endif()

# xla_need([OPTIONAL] <package>[:<program>]...): installs by apt what is missing, without a prompt. A package
# with a program counts as there when the program is on the path. OPTIONAL: goes on when that fails.
function(xla_need)
  cmake_parse_arguments(PARSE_ARGV 0 arg "OPTIONAL" "" "")
  find_program(dpkg_query dpkg-query)
  find_program(apt_get apt-get)
  set(missing "")
  foreach(entry IN LISTS arg_UNPARSED_ARGUMENTS)
    string(REGEX MATCH "^([^:]+):?(.*)$" _ "${entry}")
    set(package "${CMAKE_MATCH_1}")
    set(program "${CMAKE_MATCH_2}")
    if(program)
      unset(found)
      find_program(found "${program}" NO_CACHE)
      if(found)
        continue()
      endif()
    endif()
    set(status "")
    if(dpkg_query)
      execute_process(COMMAND "${dpkg_query}" -W -f "\${Status}" "${package}"
        OUTPUT_VARIABLE status ERROR_QUIET)
    endif()
    if(NOT status STREQUAL "install ok installed")
      list(APPEND missing "${package}")
    endif()
  endforeach()
  if(missing STREQUAL "")
    return()
  endif()

  list(JOIN missing " " names)
  if(NOT apt_get)
    message("No apt here. If the build does not find them, install what corresponds to: ${names}")
    return()
  endif()
  set(apt "${CMAKE_COMMAND}" -E env DEBIAN_FRONTEND=noninteractive "${apt_get}" -qq)
  execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT user EQUAL 0)
    find_program(sudo sudo)
    if(NOT sudo AND arg_OPTIONAL)
      message("Missing, and not needed: ${names}")
      return()
    elseif(NOT sudo)
      message(FATAL_ERROR "Missing packages; as root: apt-get install ${names}")
    endif()
    list(PREPEND apt "${sudo}" -n)
  endif()
  message("==> apt-get install ${names}")
  execute_process(COMMAND ${apt} update RESULT_VARIABLE updated)
  execute_process(COMMAND ${apt} install -y --no-install-recommends ${missing}
    RESULT_VARIABLE installed)
  if(NOT installed EQUAL 0 AND arg_OPTIONAL)
    message("apt-get could not install ${names}; it goes without")
  elseif(NOT installed EQUAL 0)
    message(FATAL_ERROR "apt-get could not install: ${names}")
  endif()
endfunction()

# xla_need_plugin([OPTIONAL] <folder>): XLA for the processor behind PJRT's interface, which no package of Debian
# has. pip puts it into the folder; tests that need one then fail without. OPTIONAL: goes on when that fails. The
# version is pinned, as the bits change with it.
function(xla_need_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "OPTIONAL" "" "")
  set(optional "")
  if(arg_OPTIONAL)
    set(optional OPTIONAL)
  endif()
  set(package lammps-jax-pjrt-cpu==0.11.2)
  set(target "${arg_UNPARSED_ARGUMENTS}/${package}")
  set(plugin "${target}/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so")
  if(NOT EXISTS "${plugin}")
    xla_need(${optional} python3:python3 python3-pip:pip3)
    message("==> pip install ${package}")
    execute_process(
      COMMAND python3 -m pip install --quiet --no-deps --upgrade --target "${target}" ${package}
      RESULT_VARIABLE result)
    if(NOT EXISTS "${plugin}" AND arg_OPTIONAL)
      message("pip could not install ${package}; the tests that need it are skipped")
      return()
    elseif(NOT EXISTS "${plugin}")
      message(FATAL_ERROR "pip could not install ${package}")
    endif()
  endif()
  set(ENV{XLA_PJRT_PLUGIN} "${plugin}")
  set(ENV{XLA_REQUIRE_PJRT} 1)
endfunction()

# What cmake/wasi.cmake needs.
set(xla_wasi_packages clang-19:clang++-19 lld-19:wasm-ld-19 llvm-19:llvm-ar-19 wasi-libc libclang-rt-19-dev-wasm32
  libc++-19-dev-wasm32 libc++abi-19-dev-wasm32 nodejs:node)

# xla_configure(<build folder> <-Doption>...)
function(xla_configure build)
  set(generator "")
  find_program(ninja ninja)
  if(ninja AND NOT EXISTS "${build}/CMakeCache.txt")
    set(generator -G Ninja)
  endif()
  # Where ccache is installed, what was compiled before is not compiled again. Without a base directory, as paths
  # that it makes relative hide from errors the line that they are about.
  find_program(ccache ccache)
  if(ccache AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
    list(APPEND generator "-DCMAKE_CXX_COMPILER_LAUNCHER=${ccache}")
    set(ENV{CCACHE_SLOPPINESS} "pch_defines,time_macros,include_file_mtime,include_file_ctime")
    # A precompiled header from the cache would not recognise a header of other comments by its #pragma once.
    set(ENV{CCACHE_COMMENTS} 1)
  endif()
  execute_process(COMMAND "${CMAKE_COMMAND}" -S "${XLA_ROOT}" -B "${build}" ${generator} ${ARGN}
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "could not configure ${build}")
  endif()
endfunction()

# Stands before a command of execute_process. CMake relays a child's output through a pipe; a progress line
# wants the terminal itself, where there is one.
set(xla_on_terminal sh -c [=[
out=/proc/$PPID/fd/1
(test -t 3 3>>$out) 2>/dev/null && exec "$@" >$out 2>&1
exec "$@"
]=] sh)

# xla_build(<build folder> <result> <argument>...): the rest goes to cmake --build, after -- to the build tool.
function(xla_build build out)
  execute_process(
    COMMAND ${xla_on_terminal} "${CMAKE_COMMAND}" --build "${build}" --parallel ${JOBS} ${ARGN}
    RESULT_VARIABLE result)
  set(${out} "${result}" PARENT_SCOPE)
endfunction()
