// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps the tables of finished calls for later ones, so that a call allocates nothing. Only
// compiled functions use it.

#include <memory>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/run/call/call.hpp"

namespace xla::detail {

/// Calls in flight keep their tables for the next one.
template <class In>
class basic_call_pool {
 public:
  dependent<In, std::unique_ptr<bound_call>> take() {
    const std::lock_guard hold(lock_);
    if (free_.empty()) {
      free_.reserve(made_ + 1);  // so that returning one cannot fail
      auto c = std::make_unique<dependent<In, bound_call>>();
      ++made_;
      return c;
    }
    auto c = std::move(free_.back());
    free_.pop_back();
    return c;
  }
  void give(dependent<In, std::unique_ptr<bound_call>> c) noexcept {
    c->clear();
    const std::lock_guard hold(lock_);
    free_.push_back(std::move(c));
  }
  /// Held while the process forks.
  [[gnu::cold]] void hold(bool holds) noexcept { holds ? lock_.lock() : lock_.unlock(); }

 private:
  spin_lock lock_;
  list<std::unique_ptr<bound_call>> free_;
  int made_ = 0;
};
using call_pool = basic_call_pool<void>;

}  // namespace xla::detail
