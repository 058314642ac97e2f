// SPDX-License-Identifier: Apache-2.0
#pragma once

// The checksum CRC-32, which detects damaged files. Checkpoints and saved programs have one; it
// protects against accidents and not against attackers.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace xla::ext::detail {

/// table[k][b] is the effect of byte b on the sum if k more bytes follow it.
inline constexpr auto crc32_tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> table{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    table[0][b] = c;
  }
  for (std::size_t k = 1; k < 8; ++k)
    for (std::size_t b = 0; b < 256; ++b)
      table[k][b] = table[0][table[k - 1][b] & 255] ^ (table[k - 1][b] >> 8);
  return table;
}();

/// CRC-32 of IEEE 802.3, as in gzip and PNG, eight bytes at a time. It detects every change within
/// 32 neighbouring bits, and misses one in four thousand million others.
class crc32 {
 public:
  void add(std::span<const std::uint8_t> bytes) {
    const auto& t = crc32_tables;
    std::size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
      const std::uint32_t low = sum_ ^ four(bytes.data() + i), high = four(bytes.data() + i + 4);
      sum_ = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^
             t[3][high & 255] ^ t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
    }
    for (; i < bytes.size(); ++i) sum_ = t[0][(sum_ ^ bytes[i]) & 255] ^ (sum_ >> 8);
  }
  std::uint32_t value() const { return ~sum_; }

 private:
  /// Four bytes as a little-endian number; compilers make it one load where that is the order.
  static std::uint32_t four(const std::uint8_t* from) {
    return std::uint32_t{from[0]} | std::uint32_t{from[1]} << 8 | std::uint32_t{from[2]} << 16 |
           std::uint32_t{from[3]} << 24;
  }

  std::uint32_t sum_ = ~std::uint32_t{0};
};

}  // namespace xla::ext::detail
