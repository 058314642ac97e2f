// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cuts a tensor into the parts of a mesh's devices, and joins them again. device_memory.hpp uses
// it.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "xla/shape/shape.hpp"
#include "xla/shape/sharding.hpp"

namespace xla::ext::pjrt {

/// The part of a row-major tensor that a device of a mesh holds.
class mesh_part {
  using shape = xla::detail::shape;

 public:
  /// width: bytes per element.
  mesh_part(const xla::detail::sharding& s, const shape& whole, int device, std::size_t width)
      : whole_(whole), part_(s.part_of(whole)), width_(width) {
    for (int i = 0; i < whole.rank; ++i) first_.push(s.part_of(device, i) * part_[i]);
  }
  const shape& dims() const { return part_; }

  void take_out(const void* whole, void* part) const {
    each_row([&](std::size_t there, std::size_t here, std::size_t bytes) {
      std::memcpy(static_cast<char*>(part) + here, static_cast<const char*>(whole) + there, bytes);
    });
  }
  void put_in(const void* part, void* whole) const {
    each_row([&](std::size_t there, std::size_t here, std::size_t bytes) {
      std::memcpy(static_cast<char*>(whole) + there, static_cast<const char*>(part) + here, bytes);
    });
  }

 private:
  template <class F>
  void each_row(const F& copy) const {
    const int last = whole_.rank - 1;
    const auto bytes = static_cast<std::size_t>(last < 0 ? 1 : part_[last]) * width_;
    const std::size_t all = static_cast<std::size_t>(count(part_)) * width_;
    shape at = first_;
    for (std::size_t here = 0; here < all; here += bytes) {
      std::int64_t there = 0;
      for (int i = 0; i <= last; ++i) there = there * whole_[i] + at[i];
      copy(static_cast<std::size_t>(there) * width_, here, bytes);
      for (int i = last - 1; i >= 0 && ++at[i] == first_[i] + part_[i]; --i) at[i] = first_[i];
    }
  }

  shape whole_, part_, first_;
  std::size_t width_;
};

}  // namespace xla::ext::pjrt
