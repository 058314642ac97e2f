// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the IDX files of MNIST. Compressed ones are read by ext/gzip.hpp, which needs zlib.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/io/bytes.hpp"
#include "xla/io/file.hpp"

namespace xla::io {

/// The element type codes of the IDX format (http://yann.lecun.com/exdb/mnist/).
enum class idx_type : std::uint8_t {
  uint8 = 0x08,
  int8 = 0x09,
  int16 = 0x0B,
  int32 = 0x0C,
  float32 = 0x0D,
  float64 = 0x0E
};

/// The bytes that one element takes; 0 for a code that IDX does not know.
constexpr std::size_t idx_element_size(idx_type type) {
  switch (type) {
    case idx_type::uint8:
    case idx_type::int8: return 1;
    case idx_type::int16: return 2;
    case idx_type::int32:
    case idx_type::float32: return 4;
    case idx_type::float64: return 8;
  }
  return 0;
}

/// An array read from an IDX file: its sizes (MNIST images: count, rows, columns) and its elements
/// in row-major order and in the byte order of this machine.
struct idx_array {
  std::vector<std::int64_t> sizes;
  idx_type type = idx_type::uint8;
  std::vector<std::uint8_t> bytes;
};

namespace detail {

[[noreturn]] inline void refuse_idx(const std::string& name, const std::string& reason) {
  throw io_error("'" + name + "' is not a valid IDX file: " + reason);
}

inline std::string hex(std::uint8_t byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {'0', 'x', digits[byte >> 4], digits[byte & 15]};
}

/// The type and the number of axes, from the first four bytes.
inline std::pair<idx_type, std::size_t> idx_magic(std::span<const std::uint8_t> file,
                                                  const std::string& name) {
  if (file.size() >= 2 && file[0] == 0x1f && file[1] == 0x8b)
    refuse_idx(name,
               "it is compressed with gzip; decompress it, or read it with "
               "xla::ext::read_idx of <xla/ext/gzip.hpp>");
  if (file.size() < 4)
    refuse_idx(name, "it has " + std::to_string(file.size()) + " bytes, the header takes 4");
  if (file[0] != 0 || file[1] != 0)
    refuse_idx(name,
               "it starts with " + hex(file[0]) + " " + hex(file[1]) + ", expected 0x00 0x00");
  const auto type = static_cast<idx_type>(file[2]);
  if (idx_element_size(type) == 0)
    refuse_idx(name, "element type " + hex(file[2]) + ", expected 0x08, 0x09 or 0x0b to 0x0e");
  if (file[3] < 1 || file[3] > 4)
    refuse_idx(name, "it has " + std::to_string(file[3]) + " axes, expected 1 to 4");
  return {type, file[3]};
}

/// Reads one big-endian size per axis; their product has to be the length of the rest of the file.
inline void idx_sizes(std::span<const std::uint8_t> file, const std::string& name, idx_array& out) {
  std::uint64_t bytes = idx_element_size(out.type);
  std::string product;
  for (std::size_t axis = 0; axis < out.sizes.size(); ++axis) {
    std::uint32_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | file[4 + 4 * axis + i];
    out.sizes[axis] = size;
    product += (axis == 0 ? "" : " x ") + std::to_string(size);
  }
  for (const auto size : out.sizes) {
    const auto factor = static_cast<std::uint64_t>(size);
    if (factor != 0 && bytes > std::numeric_limits<std::int64_t>::max() / factor)
      refuse_idx(name, "sizes " + product + " overflow");
    bytes *= factor;
  }
  const auto header = 4 + 4 * out.sizes.size();
  if (file.size() - header != bytes)
    refuse_idx(name, "sizes " + product + " take " + std::to_string(bytes) +
                         " bytes after the header, found " + std::to_string(file.size() - header));
}

}  // namespace detail

/// Reads an IDX array from the bytes of a file; `name` stands for the file in messages. Throws
/// `xla::io_error` unless type, number of axes (1 to 4), sizes and length are exactly consistent.
inline idx_array parse_idx(std::span<const std::uint8_t> file, const std::string& name) {
  const auto [type, axes] = detail::idx_magic(file, name);
  const auto header = 4 + 4 * axes;
  if (file.size() < header)
    detail::refuse_idx(name, "it has " + std::to_string(file.size()) + " bytes, the header of " +
                                 std::to_string(axes) + " axes takes " + std::to_string(header));
  idx_array out{std::vector<std::int64_t>(axes, 0), type, {}};
  detail::idx_sizes(file, name, out);
  out.bytes.assign(file.begin() + static_cast<std::ptrdiff_t>(header), file.end());
  detail::convert_bytes(out.bytes, idx_element_size(type), std::endian::big);
  return out;
}

/// Reads an IDX file that is not compressed. Throws `xla::io_error`, naming the path, what was
/// found and what was expected.
inline idx_array read_idx(const std::string& path) { return parse_idx(read_file(path), path); }

}  // namespace xla::io
