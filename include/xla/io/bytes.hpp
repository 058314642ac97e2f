// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes with an owner: a vector, or a view that keeps its owner alive. Named arrays and mapped
// files hold them; no type or shape is known here. convert_bytes() and with_order() convert
// elements between the order of bytes of a file and that of this processor.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace xla::io {

/// A vector of bytes, or a view of bytes that someone else owns, such as a mapped file.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::vector<std::uint8_t> own) noexcept : own_(std::move(own)) {}
  Bytes(std::initializer_list<std::uint8_t> own) : own_(own) {}
  /// A view of bytes that `owner` keeps alive and unchanged as long as any copy exists.
  Bytes(std::span<const std::uint8_t> there, std::shared_ptr<const void> owner) noexcept
      : there_(there), owner_(std::move(owner)) {}

  const std::uint8_t* data() const noexcept { return owner_ ? there_.data() : own_.data(); }
  std::size_t size() const noexcept { return owner_ ? there_.size() : own_.size(); }
  const std::uint8_t* begin() const noexcept { return data(); }
  const std::uint8_t* end() const noexcept { return data() + size(); }

  /// A part of them, which shares a view's owner; of a vector it is a copy.
  Bytes view(std::span<const std::uint8_t> part) const {
    if (owner_) return {part, owner_};
    return std::vector<std::uint8_t>(part.begin(), part.end());
  }

  /// For writing: a view is copied to a vector first.
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

namespace detail {

/// Reverses the bytes of every element.
inline void reverse_bytes(std::span<std::uint8_t> elements, std::size_t width) {
  for (std::size_t at = 0; width > 1 && at + width <= elements.size(); at += width)
    std::ranges::reverse(elements.subspan(at, width));
}
/// Converts elements from an order of bytes to this processor's, or back.
inline void convert_bytes(std::span<std::uint8_t> elements, std::size_t width, std::endian order) {
  if (std::endian::native != order) reverse_bytes(elements, width);
}
/// The same of bytes that may be a view, which becomes a copy only if its bytes change.
inline void convert_bytes(Bytes& elements, std::size_t width, std::endian order) {
  if (std::endian::native != order && width > 1) reverse_bytes(elements.edit(), width);
}
/// Calls f(bytes) with elements of this processor converted to an order of bytes: themselves, or a
/// copy.
template <class F>
void with_order(std::span<const std::uint8_t> elements, std::size_t width, std::endian order,
                F&& f) {
  if (std::endian::native == order || width == 1) return f(elements);
  std::vector<std::uint8_t> converted(elements.begin(), elements.end());
  reverse_bytes(converted, width);
  f(std::span<const std::uint8_t>(converted));
}

}  // namespace detail

}  // namespace xla::io
