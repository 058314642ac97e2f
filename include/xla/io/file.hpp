// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads, maps and writes whole files, with a limit on their size and the path in every error. Files
// that readers must find complete are written by atomic_file.hpp.

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
#include "xla/base/system/file_mapping.hpp"
#include "xla/base/system/open_file.hpp"
#include "xla/io/bytes.hpp"

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
