// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads gzip-compressed files, such as MNIST's, by zlib. It does not compress.

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/io/file.hpp"
#include "xla/io/idx.hpp"

namespace xla::ext {
namespace detail {

/// A zlib inflater of gzip members over bytes in memory.
class inflater {
 public:
  explicit inflater(std::string name) : name_(std::move(name)) {
    // 16: expect a gzip header, whose checksum and length zlib then verifies.
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) refuse("zlib cannot start");
  }
  inflater(const inflater&) = delete;
  inflater& operator=(const inflater&) = delete;
  ~inflater() { inflateEnd(&stream_); }

  /// Appends one gzip member to `out` and returns how many bytes of `in` it consumed.
  std::size_t member(std::span<const std::uint8_t> in, std::uint64_t max_bytes,
                     std::vector<std::uint8_t>& out) {
    constexpr std::size_t chunk = std::size_t{1} << 18;
    inflateReset(&stream_);
    stream_.avail_in = 0;
    std::size_t fed = 0;
    std::size_t size = out.size();
    for (int state = Z_OK; state != Z_STREAM_END;) {
      if (stream_.avail_in == 0) {
        const auto count = std::min(in.size() - fed, std::size_t{1} << 30);
        if (count == 0) refuse("it ends in the middle");
        stream_.next_in = const_cast<Bytef*>(in.data() + fed);  // zlib only reads
        stream_.avail_in = static_cast<uInt>(count);
        fed += count;
      }
      out.resize(size + chunk);
      stream_.next_out = out.data() + size;
      stream_.avail_out = static_cast<uInt>(chunk);
      state = inflate(&stream_, Z_NO_FLUSH);
      if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
        refuse(stream_.msg != nullptr ? stream_.msg : "damaged data");
      size += chunk - stream_.avail_out;
      if (size > max_bytes) refuse("it holds more than " + std::to_string(max_bytes) + " bytes");
    }
    out.resize(size);
    return fed - stream_.avail_in;
  }

  [[noreturn]] void refuse(const std::string& reason) const {
    throw io_error("cannot decompress '" + name_ + "': " + reason);
  }

 private:
  std::string name_;
  z_stream stream_{};
};

}  // namespace detail

/// Whether the bytes begin like a gzip file.
inline bool is_gzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/// Decompresses a gzip file given as bytes; `name` stands for it in messages. Throws
/// `xla::io_error` if it is damaged or holds more than `max_bytes`.
inline std::vector<std::uint8_t> gunzip(std::span<const std::uint8_t> bytes,
                                        const std::string& name,
                                        std::uint64_t max_bytes = io::default_max_bytes) {
  detail::inflater inflater{name};
  std::vector<std::uint8_t> out;
  do {
    bytes = bytes.subspan(inflater.member(bytes, max_bytes, out));
  } while (is_gzip(bytes));
  // gzip(1) allows padding with zeros.
  if (std::any_of(bytes.begin(), bytes.end(), [](auto byte) { return byte != 0; }))
    inflater.refuse("other data follows the compressed data");
  return out;
}

/// The bytes of a file, decompressed if it is a gzip file. Throws `xla::io_error` if it cannot be
/// read, is damaged, or holds more than `max_bytes` before or after decompression.
inline std::vector<std::uint8_t> read_file(const std::string& path,
                                           std::uint64_t max_bytes = io::default_max_bytes) {
  auto bytes = io::read_file(path, max_bytes);
  return is_gzip(bytes) ? gunzip(bytes, path, max_bytes) : bytes;
}

/// Reads an IDX file, plain or gzip-compressed; otherwise like `xla::io::read_idx`.
inline io::idx_array read_idx(const std::string& path) {
  return io::parse_idx(read_file(path), path);
}

}  // namespace xla::ext
