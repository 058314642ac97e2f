// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps a file into memory instead of reading it, for weights. The safetensors reader uses it.

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "xla/base/error.hpp"
#include "xla/base/system/file_mapping.hpp"
#include "xla/io/bytes.hpp"
#include "xla/io/file.hpp"

namespace xla::io {

/// Maps the bytes of a file: no copy is made, and programs that read the same file share memory.
/// Writing to a mapped file changes the bytes that readers see, and truncating it ends a program
/// that reads there; io::atomic_file replaces files and disturbs nobody. Files that are empty or
/// claim to be, like those of /proc, are read instead. Throws `xla::io_error` if neither works, for
/// more than `max_mapped_bytes`, and unless it is a regular file.
inline Bytes map_file(const std::string& path) {
  if (sys::has_file_mappings && detail::readable_size(path, max_mapped_bytes) > 0) {
    const auto pages = std::make_shared<const sys::file_mapping>(path);
    if (!pages->bytes().empty()) return {pages->bytes(), pages};
    if (const char* const failed = pages->failed())
      throw io_error(std::string("cannot ") + failed + " '" + path + "': " + std::strerror(errno));
  }
  return read_file(path);
}

}  // namespace xla::io
