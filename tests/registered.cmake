# SPDX-License-Identifier: Apache-2.0
# Every source of tests/ is registered in tests.cmake: a test that is never built tests nothing.

cmake_minimum_required(VERSION 3.24)

include("${REGISTERED}")
file(GLOB_RECURSE sources RELATIVE "${CMAKE_CURRENT_LIST_DIR}" "${CMAKE_CURRENT_LIST_DIR}/*.cpp")
list(FILTER sources EXCLUDE REGEX "^(refused|package|fuzz)/|^(main|pch).cpp$")
if(registered)
  list(REMOVE_ITEM sources ${registered})
endif()
if(sources)
  list(JOIN sources ", " names)
  message(FATAL_ERROR "not registered in tests/tests.cmake: ${names}")
endif()
