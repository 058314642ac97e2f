# SPDX-License-Identifier: Apache-2.0
# xla::gzip: xla::xla with zlib, for compressed files; absent where zlib is.

find_package(ZLIB QUIET GLOBAL)
if(ZLIB_FOUND AND NOT TARGET xla::gzip)
  add_library(xla::gzip INTERFACE IMPORTED GLOBAL)
  target_link_libraries(xla::gzip INTERFACE xla::xla ZLIB::ZLIB)
  target_compile_definitions(xla::gzip INTERFACE XLA_HAS_ZLIB=1)
endif()
