# SPDX-License-Identifier: Apache-2.0
# Toolchain file for Windows by MinGW-w64 with POSIX threads, on Linux:
#   cmake -B build -DCMAKE_TOOLCHAIN_FILE=<xla>/cmake/mingw.cmake -DCMAKE_BUILD_TYPE=Release
# The packages are g++-mingw-w64-x86-64-posix and, to run programs, wine64. Programs need no other library.

set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)

# Libraries of this machine are not for Windows. Headers alone may be: those of Eigen, and Boost.Hana's, which
# dependencies.cmake finds.
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
