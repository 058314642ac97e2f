# SPDX-License-Identifier: Apache-2.0
# xla::images: xla::xla with libpng and libjpeg(-turbo), to read pictures; absent where one of them is.

find_package(PNG 1.6 QUIET GLOBAL)
find_package(JPEG QUIET GLOBAL)
if(PNG_FOUND AND JPEG_FOUND AND NOT TARGET xla::images)
  add_library(xla::images INTERFACE IMPORTED GLOBAL)
  target_link_libraries(xla::images INTERFACE xla::xla PNG::PNG JPEG::JPEG)
  target_compile_definitions(xla::images INTERFACE XLA_HAS_IMAGES=1)
endif()
