# SPDX-License-Identifier: Apache-2.0
# Toolchain file for WebAssembly with WASI, by Debian's clang 19: cmake --preset wasi, or
#   cmake -B build -DCMAKE_TOOLCHAIN_FILE=<xla>/cmake/wasi.cmake -DCMAKE_BUILD_TYPE=Release
# Programs link xla::xla or xla::runtime, which bring what Debian's libc++abi lacks for exceptions. CTest starts them
# by node. The packages are
#   clang-19 lld-19 llvm-19 wasi-libc libclang-rt-19-dev-wasm32 libc++-19-dev-wasm32 libc++abi-19-dev-wasm32 nodejs
# There are no threads. Kernels use SIMD of 128 bits by the packets of Eigen's main branch, which are for any processor
# with clang; no release up to 5.0.1 has them.

set(CMAKE_SYSTEM_NAME Generic)  # WASI is known to CMake since 4.1
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_AR llvm-ar-19)
set(CMAKE_RANLIB llvm-ranlib-19)
set(CMAKE_EXECUTABLE_SUFFIX_CXX .wasm)
set(CMAKE_CXX_FLAGS_INIT "-stdlib=libc++ -fwasm-exceptions -msimd128 -DEIGEN_VECTORIZE_GENERIC -DEIGEN_GENERIC_VECTOR_SIZE_BYTES=16")
# The default of 64 KB is too little for kernels with buffers on the stack.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-z,stack-size=1048576")
set(CMAKE_CROSSCOMPILING_EMULATOR node --no-warnings "${CMAKE_CURRENT_LIST_DIR}/wasi/run.mjs")

# Libraries of this machine are not for WebAssembly. Headers alone may be: Boost.Hana, which dependencies.cmake finds.
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
