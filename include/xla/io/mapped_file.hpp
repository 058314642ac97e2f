// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps a file into memory instead of reading it, for weights. The safetensors reader uses it.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "xla/base/error.hpp"
#include "xla/io/bytes.hpp"
#include "xla/io/file.hpp"

#ifndef _WIN32
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace xla::io {

#ifndef _WIN32
namespace detail {

/// An open file.
struct descriptor {
  int number;
  explicit descriptor(const std::string& path)
      : number(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number < 0) throw io_error("cannot open '" + path + "': " + std::strerror(errno));
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { ::close(number); }
  std::uint64_t size(const std::string& path) const {
    struct stat facts = {};
    if (::fstat(number, &facts) != 0)
      throw io_error("cannot read '" + path + "': " + std::strerror(errno));
    return static_cast<std::uint64_t>(facts.st_size);
  }
};

/// Pages of a file, which stay mapped after it is closed, renamed or removed.
struct mapping {
  void* start;
  std::size_t size;
  mapping(const std::string& path, const descriptor& file, std::size_t bytes)
      : start(::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.number, 0)), size(bytes) {
    if (start == MAP_FAILED) throw io_error("cannot map '" + path + "': " + std::strerror(errno));
    ::madvise(start, size, MADV_WILLNEED);  // a hint
  }
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  ~mapping() { ::munmap(start, size); }
};

}  // namespace detail
#endif

/// The bytes of a file where the system has them: no copy is made, and programs that read the same
/// file share its memory. Who writes into a file that is mapped changes what is read, and who cuts
/// it short ends the program that reads there; io::atomic_file replaces files and disturbs nobody.
/// What is empty or says so, as files of /proc, is read. Throws `xla::io_error` when neither can be
/// done, for more than `max_mapped_bytes`, and for what is no regular file.
inline Bytes map_file(const std::string& path) {
#ifndef _WIN32
  if (detail::readable_size(path, max_mapped_bytes) > 0) {
    const detail::descriptor file{path};
    if (const std::uint64_t size = file.size(path); size > 0) {
      const auto pages =
          std::make_shared<const detail::mapping>(path, file, static_cast<std::size_t>(size));
      return {{static_cast<const std::uint8_t*>(pages->start), pages->size}, pages};
    }
  }
#endif
  return read_file(path);
}

}  // namespace xla::io
