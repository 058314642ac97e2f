// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tensor's value with its name, outside of any tensor: the element of state dictionaries and
// files. The bytes are copied or mapped; nothing is computed with them.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "xla/io/bytes.hpp"
#include "xla/shape/dtype.hpp"

namespace xla {

/// A tensor's value outside of any tensor: its name, its type, its sizes (of any number), and the
/// elements in row-major order as they are in memory.
struct NamedArray {
  std::string name;
  dtype type = dtype::float32;
  std::vector<std::int64_t> sizes;
  io::Bytes bytes;

  friend bool operator==(const NamedArray&, const NamedArray&) = default;
};

/// The values of a model or an optimizer by name, such as "fc1.weight"; their order means nothing.
using StateDict = std::vector<NamedArray>;

namespace io {

/// The bytes of an array of these sizes; empty if that overflows, even if another axis has size 0,
/// or if a size is negative.
template <class = void>
inline std::optional<std::uint64_t> array_bytes(dtype type, std::span<const std::int64_t> sizes) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  auto bytes = static_cast<std::uint64_t>(size_of(type));
  bool any = true;
  for (const auto size : sizes) {
    if (size < 0) return std::nullopt;
    const auto factor = static_cast<std::uint64_t>(size);
    any = any && factor > 0;
    if (factor == 0) continue;
    if (bytes > most / factor) return std::nullopt;
    bytes *= factor;
  }
  return any ? bytes : 0;
}

/// Whether two arrays are equal except for their names.
template <class = void>
inline bool same_values(const NamedArray& a, const NamedArray& b) {
  return a.type == b.type && a.sizes == b.sizes && a.bytes == b.bytes;
}

/// Sizes as Python writes them in a list: "[2, 3]".
template <class = void>
inline std::string sizes_text(std::span<const std::int64_t> sizes) {
  std::string out;
  for (const auto size : sizes) out += (out.empty() ? "" : ", ") + std::to_string(size);
  return "[" + out + "]";
}

}  // namespace io
}  // namespace xla
