// SPDX-License-Identifier: Apache-2.0
#pragma once

// The format of a compiled program in a file, with a checksum. The cache on disk and
// ahead_of_time.hpp write it.

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "xla/ext/checksum.hpp"

namespace xla::ext::pjrt {

/// A compiled program as it is stored in a file.
struct saved_program {
  std::string made_by;  ///< plugin and processor
  std::string options;  ///< as compile_options::encode() gives them
  std::string text;     ///< StableHLO
  std::string code;     ///< the plugin's own

  /// With a checksum at the end.
  std::string pack() const;
  /// Empty if a byte differs from the packed ones, or is missing.
  static std::optional<saved_program> unpack(std::string_view bytes);
};

namespace detail {

inline constexpr std::string_view saved_begins = "xla executable 1\n";

inline std::uint32_t checksum(std::string_view bytes) {
  ext::detail::crc32 sum;
  sum.add({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return sum.value();
}

}  // namespace detail

inline std::string saved_program::pack() const {
  std::string out(detail::saved_begins);
  for (const std::string* part : {&made_by, &options, &text, &code}) {
    const std::uint64_t size = part->size();
    out.append(reinterpret_cast<const char*>(&size), sizeof size);
    out += *part;
  }
  const std::uint32_t sum = detail::checksum(out);
  return out.append(reinterpret_cast<const char*>(&sum), sizeof sum);
}

inline std::optional<saved_program> saved_program::unpack(std::string_view bytes) {
  std::uint32_t sum = 0;
  if (bytes.size() < sizeof sum || !bytes.starts_with(detail::saved_begins)) return {};
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  bytes.remove_suffix(sizeof sum);
  if (detail::checksum(bytes) != sum) return {};
  bytes.remove_prefix(detail::saved_begins.size());
  saved_program out;
  for (std::string* part : {&out.made_by, &out.options, &out.text, &out.code}) {
    std::uint64_t size = 0;
    if (bytes.size() < sizeof size) return {};
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (bytes.size() < size) return {};
    part->assign(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return out;
}

}  // namespace xla::ext::pjrt
