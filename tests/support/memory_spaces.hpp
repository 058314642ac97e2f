// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstring>
#include <vector>

#include "xla/tensor/buffer.hpp"
#include "xla/tensor/machine.hpp"

namespace test {

/// Elements as a backend has them: the host gets copies.
struct backend_elements {
  static inline std::atomic<int> living{0}, copied{0};
  static inline bool broken = false;
  std::vector<char> bytes;

  explicit backend_elements(std::size_t count) : bytes(count) { ++living; }
  ~backend_elements() { --living; }
};

inline constexpr xla::detail::memory_space backend_memory{
    .release = [](void* owner) { delete static_cast<backend_elements*>(owner); },
    .copy_to_host =
        [](void* owner, void* to, std::size_t bytes) {
          if (backend_elements::broken) throw xla::runtime_error("the backend is gone");
          auto& from = static_cast<backend_elements*>(owner)->bytes;
          if (bytes != from.size()) throw xla::runtime_error("another number of bytes");
          std::memcpy(to, from.data(), bytes);
          ++backend_elements::copied;
        }};
/// The host reads them, in the order in which they are.
inline constexpr xla::detail::memory_space ordered_memory{.release = backend_memory.release};

/// A tensor of the same numbers, in an order of axes and a memory space.
template <class T, int R>
xla::Tensor<T, R> laid_out(const xla::Tensor<T, R>& x, xla::detail::layout order,
                        const xla::detail::memory_space& space = ordered_memory) {
  xla::detail::shape dims;
  for (std::int64_t size : x.sizes()) dims.push(size);
  std::int64_t strides[xla::detail::max_rank];
  find_strides(dims, order, strides);
  auto* const there = new backend_elements(static_cast<std::size_t>(count(dims)) * sizeof(T));
  const auto values = x.to_vector();
  for (std::int64_t i = 0; i < count(dims); ++i) {
    std::int64_t rest = i, at = 0;
    for (int axis = R - 1; axis >= 0; --axis) {
      at += rest % dims[axis] * strides[axis];
      rest /= dims[axis];
    }
    const T value = values[static_cast<std::size_t>(i)];
    std::memcpy(there->bytes.data() + static_cast<std::size_t>(at) * sizeof(T), &value, sizeof(T));
  }
  xla::Tensor<T, R> out;
  void* const memory = &space == &ordered_memory ? there->bytes.data() : nullptr;
  xla::detail::machine_of<T>::borrow(out, xla::dtype_of<T>, dims, {&space, there, memory, order});
  return out;
}

}  // namespace test
