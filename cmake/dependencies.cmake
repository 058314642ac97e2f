# SPDX-License-Identifier: Apache-2.0
# The system's packages where they are found, else the pinned sources.
# SOURCE_SUBDIR names a folder that does not exist: only headers are used, not the projects' own builds.

include(FetchContent)
list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")

# WebAssembly: no threads, the packets of Eigen's main branch, and no folder of this machine's other headers.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32")
  set(eigen_commit 12c9c14bc5d4c4ba28cf41102ea99b7f83f30d04)
  FetchContent_Declare(Eigen3
    URL https://gitlab.com/libeigen/eigen/-/archive/${eigen_commit}/eigen-${eigen_commit}.tar.gz
    SOURCE_SUBDIR none)
  if(NOT TARGET Threads::Threads)
    add_library(Threads::Threads INTERFACE IMPORTED GLOBAL)
  endif()
  find_path(Hana_INCLUDE_DIR boost/hana.hpp PATHS /usr/local/include /usr/include)
  if(Hana_INCLUDE_DIR MATCHES "^/usr/")
    file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/headers")
    file(CREATE_LINK "${Hana_INCLUDE_DIR}/boost" "${CMAKE_BINARY_DIR}/headers/boost" SYMBOLIC)
    set_property(CACHE Hana_INCLUDE_DIR PROPERTY VALUE "${CMAKE_BINARY_DIR}/headers")
  endif()
endif()

if(NOT TARGET Threads::Threads)
  find_package(Threads REQUIRED GLOBAL)
endif()

# An installed Eigen may be 3.4 or 5, whose own file says that neither is compatible with the other.
if(NOT TARGET Eigen3::Eigen AND NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32"
    AND NOT FETCHCONTENT_TRY_FIND_PACKAGE_MODE STREQUAL "NEVER")
  find_package(Eigen3 3.4 QUIET NO_MODULE GLOBAL)
  if(NOT Eigen3_FOUND)
    find_package(Eigen3 5 QUIET NO_MODULE GLOBAL)
  endif()
endif()
if(NOT TARGET Eigen3::Eigen)
  FetchContent_Declare(Eigen3
    GIT_REPOSITORY https://gitlab.com/libeigen/eigen.git
    GIT_TAG 3.4.0
    GIT_SHALLOW ON
    SOURCE_SUBDIR none
    FIND_PACKAGE_ARGS 3.4 NO_MODULE GLOBAL)
  FetchContent_MakeAvailable(Eigen3)
  if(NOT TARGET Eigen3::Eigen)
    add_library(Eigen3::Eigen INTERFACE IMPORTED GLOBAL)
    target_include_directories(Eigen3::Eigen INTERFACE "${eigen3_SOURCE_DIR}")
  endif()
endif()

if(NOT TARGET Boost::hana)
  FetchContent_Declare(Hana
    GIT_REPOSITORY https://github.com/boostorg/hana.git
    GIT_TAG boost-1.84.0
    GIT_SHALLOW ON
    SOURCE_SUBDIR none
    FIND_PACKAGE_ARGS MODULE GLOBAL)
  FetchContent_MakeAvailable(Hana)
  if(NOT TARGET Boost::hana)
    add_library(Boost::hana INTERFACE IMPORTED GLOBAL)
    target_include_directories(Boost::hana INTERFACE "${hana_SOURCE_DIR}/include")
  endif()
endif()

if(XLA_BUILD_TESTS AND NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32" AND NOT TARGET Catch2::Catch2)
  FetchContent_Declare(Catch2
    GIT_REPOSITORY https://github.com/catchorg/Catch2.git
    GIT_TAG v3.7.1
    GIT_SHALLOW ON
    FIND_PACKAGE_ARGS GLOBAL)
  FetchContent_MakeAvailable(Catch2)
endif()

if(XLA_BUILD_EXAMPLES AND NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32" AND NOT TARGET CLI11::CLI11)
  FetchContent_Declare(CLI11
    GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git
    GIT_TAG v2.4.2
    GIT_SHALLOW ON
    FIND_PACKAGE_ARGS GLOBAL)
  FetchContent_MakeAvailable(CLI11)
endif()
