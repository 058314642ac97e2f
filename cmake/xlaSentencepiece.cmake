# SPDX-License-Identifier: Apache-2.0
# xla::sentencepiece: xla::xla with the library sentencepiece, for its models of tokens; absent where that is.

find_path(XLA_SENTENCEPIECE_INCLUDE_DIR sentencepiece_processor.h)
find_library(XLA_SENTENCEPIECE_LIBRARY sentencepiece)
mark_as_advanced(XLA_SENTENCEPIECE_INCLUDE_DIR XLA_SENTENCEPIECE_LIBRARY)
if(XLA_SENTENCEPIECE_INCLUDE_DIR AND XLA_SENTENCEPIECE_LIBRARY AND NOT TARGET xla::sentencepiece)
  add_library(xla::sentencepiece INTERFACE IMPORTED GLOBAL)
  target_link_libraries(xla::sentencepiece INTERFACE xla::xla "${XLA_SENTENCEPIECE_LIBRARY}")
  target_include_directories(xla::sentencepiece SYSTEM INTERFACE "${XLA_SENTENCEPIECE_INCLUDE_DIR}")
  target_compile_definitions(xla::sentencepiece INTERFACE XLA_HAS_SENTENCEPIECE=1)
endif()
