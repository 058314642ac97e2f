// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and writes whole files, with a limit on their size and the path in every error. Mapped
// files are mapped_file.hpp.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/base/system/file.hpp"
#include "xla/base/system/open_file.hpp"

namespace xla::io {

/// The default limit on the size of files: 4 GiB.
inline constexpr std::uint64_t default_max_bytes = std::uint64_t{4} << 30;
/// The limits for configurations, vocabularies and tokenizers, 256 MiB, and for pictures, 1 GiB.
inline constexpr std::uint64_t max_vocabulary_bytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t max_picture_bytes = std::uint64_t{1} << 30;
/// The limit for mapped files, of which only the pages used are read: 4 TiB.
inline constexpr std::uint64_t max_mapped_bytes = std::uint64_t{4} << 40;

namespace detail {

struct file_closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

[[noreturn]] inline void refuse_length(const std::string& path, std::uint64_t bytes,
                                       std::uint64_t max_bytes) {
  throw io_error("'" + path + "' has " + std::to_string(bytes) +
                 " bytes, which is more than the limit of " + std::to_string(max_bytes) + " bytes");
}

/// The size of a file. Refuses, before it is opened, a file longer than max_bytes, and one that may
/// be endless, such as a pipe. 0 if the size cannot be determined; opening the file will report
/// why.
inline std::uint64_t readable_size(const std::string& path, std::uint64_t max_bytes) {
  const auto [kind, size] = sys::facts_of(path);
  if (kind == sys::file_kind::folder) throw io_error("cannot read '" + path + "': it is a folder");
  if (kind == sys::file_kind::other)
    throw io_error("cannot read '" + path +
                   "': it is a device or a pipe, whose size is not known and may have no limit; "
                   "copy what it gives to a file");
  if (size > max_bytes) refuse_length(path, size, max_bytes);
  return size;
}

/// Appends the whole file to `out`, a vector of bytes or a string.
template <class Container>
void append_file(const std::string& path, std::uint64_t max_bytes, Container& out) {
  readable_size(path, max_bytes);
  errno = 0;
  const std::unique_ptr<std::FILE, file_closer> file{sys::open_file(path, "rb")};
  if (!file) throw io_error("cannot open '" + path + "': " + std::strerror(errno));
  constexpr std::size_t chunk = std::size_t{1} << 18;
  std::size_t size = out.size();
  for (;;) {
    out.resize(size + chunk);
    const auto count = std::fread(out.data() + size, 1, chunk, file.get());
    size += count;
    if (size > max_bytes) refuse_length(path, size, max_bytes);  // the file grows while it is read
    if (count < chunk) break;
  }
  if (std::ferror(file.get()) != 0)
    throw io_error("cannot read '" + path + "': " + std::strerror(errno));
  out.resize(size);
}

}  // namespace detail

/// The bytes of a file. Throws `xla::io_error` if it cannot be read, is longer than `max_bytes`, or
/// is not a regular file.
inline std::vector<std::uint8_t> read_file(const std::string& path,
                                           std::uint64_t max_bytes = default_max_bytes) {
  std::vector<std::uint8_t> out;
  detail::append_file(path, max_bytes, out);
  return out;
}

/// Writes a file, replacing an existing one. Throws `xla::io_error` if that fails, possibly after a
/// part was written.
inline void write_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  errno = 0;
  std::unique_ptr<std::FILE, detail::file_closer> file{sys::open_file(path, "wb")};
  if (!file) throw io_error("cannot open '" + path + "' for writing: " + std::strerror(errno));
  const auto count = std::fwrite(bytes.data(), 1, bytes.size(), file.get());
  // Only closing reports whether the last bytes arrived.
  if (std::fclose(file.release()) != 0 || count != bytes.size())
    throw io_error("cannot write '" + path + "': " + std::strerror(errno));
}

}  // namespace xla::io
