// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of the slices of xs in eager mode. scan.hpp uses it and products_ahead.hpp
// implements it.

#include <atomic>
#include <cstdint>

#include "xla/base/instance.hpp"
#include "xla/tensor/handle.hpp"

namespace xla::detail {

/// The slices of one tensor of xs, which share its memory and refer to this object.
class eager_slices {
 public:
  eager_slices() = default;
  eager_slices(const eager_slices&) = delete;
  virtual ~eager_slices() = default;

  virtual void slice(std::int64_t step, handle& result) = 0;
  void retain() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  std::atomic<int> refs_{1};
};

/// Nothing if a step's slice is to be an ordinary one: outside of eager mode, for instance, or if
/// no product of several steps is faster.
template <class = void>
ref<eager_slices> open_eager_slices(const handle& xs, bool reverse);

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/loop/products_ahead.hpp"
#endif
