# SPDX-License-Identifier: Apache-2.0
# xla::safetensors: xla::xla with nlohmann-json, for safetensors files and checkpoints; absent where that is.

find_package(nlohmann_json 3.9 QUIET GLOBAL)
if(nlohmann_json_FOUND AND NOT TARGET xla::safetensors)
  add_library(xla::safetensors INTERFACE IMPORTED GLOBAL)
  target_link_libraries(xla::safetensors INTERFACE xla::xla nlohmann_json::nlohmann_json)
  target_compile_definitions(xla::safetensors INTERFACE XLA_HAS_SAFETENSORS=1)
endif()
