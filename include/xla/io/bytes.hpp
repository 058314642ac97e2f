// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes that somebody owns: a vector, or a view with its owner. Named arrays and mapped files hold
// them; no type or shape is known here.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace xla::io {

/// Bytes: a vector of its own, or a view of what somebody else keeps, such as a mapped file.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::vector<std::uint8_t> own) noexcept : own_(std::move(own)) {}
  Bytes(std::initializer_list<std::uint8_t> own) : own_(own) {}
  /// Those that are there, which an owner lets nobody take away as long as any copy reads them.
  Bytes(std::span<const std::uint8_t> there, std::shared_ptr<const void> owner) noexcept
      : there_(there), owner_(std::move(owner)) {}

  const std::uint8_t* data() const noexcept { return owner_ ? there_.data() : own_.data(); }
  std::size_t size() const noexcept { return owner_ ? there_.size() : own_.size(); }
  const std::uint8_t* begin() const noexcept { return data(); }
  const std::uint8_t* end() const noexcept { return data() + size(); }

  /// A part of them, which keeps what they view; where they view nothing it is a copy.
  Bytes view(std::span<const std::uint8_t> part) const {
    if (owner_) return {part, owner_};
    return std::vector<std::uint8_t>(part.begin(), part.end());
  }

  /// To be changed: a view becomes a vector of its own.
  std::vector<std::uint8_t>& edit() {
    if (owner_) *this = std::vector<std::uint8_t>(begin(), end());
    return own_;
  }

  friend bool operator==(const Bytes& a, const Bytes& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::vector<std::uint8_t> own_;
  std::span<const std::uint8_t> there_;
  std::shared_ptr<const void> owner_;
};

}  // namespace xla::io
