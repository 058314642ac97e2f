// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "xla/base/fork.hpp"
#include "xla/run/seed.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla {

namespace detail {

/// The process-wide generator. Tensors take successive counters in the order in which a program
/// makes them, the same in every mode.
class generator {
 public:
  static generator& instance() {
    static generator& g = held_at_fork(*new generator, fork_order::stores);
    return g;
  }
  void before_fork() noexcept { lock_.lock(); }
  void after_fork(bool) noexcept { lock_.unlock(); }
  /// Reserves counters; the result is the state before.
  rng_state take(std::uint64_t counters) {
    const std::lock_guard hold(lock_);
    return {state_.seed, std::exchange(state_.offset, state_.offset + counters)};
  }
  void set(rng_state s) {
    const std::lock_guard hold(lock_);
    state_ = s;
  }
  rng_state get() {
    const std::lock_guard hold(lock_);
    return state_;
  }

 private:
  spin_lock lock_;
  rng_state state_;
};

}  // namespace detail

template <class>
rng_state get_rng_state() {
  return detail::generator::instance().get();
}
XLA_INSTANCE(rng_state get_rng_state<void>());

template <class>
void set_rng_state(rng_state s) {
  detail::generator::instance().set(s);
}
XLA_INSTANCE(void set_rng_state<void>(rng_state));

}  // namespace xla
