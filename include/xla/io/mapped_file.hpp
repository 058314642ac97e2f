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

/// The bytes of a file where the system has them: no copy is made, and programs that read the same
/// file share its memory. Who writes into a file that is mapped changes what is read, and who cuts
/// it short ends the program that reads there; io::atomic_file replaces files and disturbs nobody.
/// What is empty or says so, as files of /proc, is read. Throws `xla::io_error` when neither can be
/// done, for more than `max_mapped_bytes`, and for what is no regular file.
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
