# SPDX-License-Identifier: Apache-2.0
# xla::dlpack: xla::xla with DLPack's header, to exchange arrays with other libraries; absent where that is.

find_path(XLA_DLPACK_INCLUDE_DIR dlpack/dlpack.h)
mark_as_advanced(XLA_DLPACK_INCLUDE_DIR)
if(XLA_DLPACK_INCLUDE_DIR AND NOT TARGET xla::dlpack)
  add_library(xla::dlpack INTERFACE IMPORTED GLOBAL)
  target_link_libraries(xla::dlpack INTERFACE xla::xla)
  target_include_directories(xla::dlpack SYSTEM INTERFACE "${XLA_DLPACK_INCLUDE_DIR}")
endif()
