// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packed or rounded forms of a buffer's elements, which the buffer owns until it is written.
// Convolutions and small-m products in autocast cache their weights so.

#include <atomic>
#include <cstdint>
#include <memory>

#include "xla/kernel/memory/thread_scratch.hpp"
#include "xla/kernel/simd/bfloat16_packet.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla::kernel {

/// Elements computed from a buffer's elements on first use. The buffer owns them and drops them
/// when it is written.
class cached_elements : public xla::detail::cached_form {
 public:
  using cached_form::cached_form;
  ~cached_elements() override { delete data_.load(std::memory_order_acquire); }

  /// The `count` elements, which make(to) writes unless they are cached. If several threads need
  /// them at once, each computes them, and one result is stored.
  template <class T, class Make>
  const T* get(std::int64_t count, Make make) {
    block* there = data_.load(std::memory_order_acquire);
    if (there) return there->template elements<T>();
    auto made = std::make_unique<block>(count * static_cast<std::int64_t>(sizeof(T)));
    make(made->template elements<T>());
    if (!data_.compare_exchange_strong(there, made.get(), std::memory_order_acq_rel))
      return there->template elements<T>();
    return made.release()->template elements<T>();
  }

 private:
  struct block {
    explicit block(std::int64_t size) : bytes(size) {
      memory.get<char>(bytes);
      xla::detail::memory_count::instance().add(bytes);
    }
    ~block() { xla::detail::memory_count::instance().remove(bytes); }
    template <class T>
    T* elements() {
      return memory.get<T>(0);
    }
    detail::scratch memory;
    std::int64_t bytes;
  };
  std::atomic<block*> data_{nullptr};
};

/// A buffer's floats, rounded to bfloat16.
class cached_rounded final : public cached_elements {
 public:
  cached_rounded() : cached_elements(&kind_of_these) {}

  /// The cached form of b, or a new one; nullptr at the first request, because a form that is used
  /// once is not worth its memory.
  static const bfloat16* of(xla::detail::buffer& b, const float* elements, std::int64_t count) {
    for (auto* f = b.forms.load(std::memory_order_acquire); f; f = f->next)
      if (f->kind == &kind_of_these)
        return static_cast<cached_rounded*>(f)->get<bfloat16>(
            count, [&](bfloat16* to) { detail::round_all(elements, to, count); });
    b.keep(*new cached_rounded);
    return nullptr;
  }

 private:
  static constexpr char kind_of_these = 0;
};

}  // namespace xla::kernel
