// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "xla/tensor/buffer.hpp"

namespace xla {

/// Where the random number generator stands: its seed, and the counters used so far.
struct rng_state {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const rng_state&, const rng_state&) = default;
};

namespace detail {

/// The process-wide generator. Tensors take successive counters in the order in which a program
/// makes them, the same in every mode.
class generator {
 public:
  static generator& instance() {
    static generator g;
    return g;
  }
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

/// Restarts random numbers: the same seed gives the same numbers, in all three modes.
template <class = void>
constexpr void manual_seed(std::uint64_t seed) {
  if (!std::is_constant_evaluated()) detail::generator::instance().set({seed, 0});
  if (std::is_constant_evaluated())
    throw std::logic_error("xla: a compiled body has no generator: call manual_seed() outside");
}
template <class = void>
inline rng_state get_rng_state() {
  return detail::generator::instance().get();
}
template <class = void>
inline void set_rng_state(rng_state s) {
  detail::generator::instance().set(s);
}

}  // namespace xla
