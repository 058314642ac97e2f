// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs independent calls on several threads of their own. image_folder.hpp decodes pictures with
// it; kernels use the pool of kernel/threads/.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace xla::data::detail {

/// Calls f(0) … f(count - 1) on so many threads, of which this is one. They are not those of
/// kernels, which work on a step. What a call throws comes out when all have ended, of
/// several the first by number.
template <class F>
void side_by_side(int threads, std::size_t count, const F& f) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < count;) try {
        f(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> others;
    const auto all = std::min(static_cast<std::size_t>(threads), count);
    for (std::size_t i = 1; i < all; ++i) others.emplace_back(work);
    work();
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace xla::data::detail
