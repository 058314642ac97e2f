// SPDX-License-Identifier: Apache-2.0
#pragma once

// manual_seed() and the state of random numbers as programs see it. generator.hpp defines it.

#include <cstdint>
#include <stdexcept>

#include "xla/base/instance.hpp"

namespace xla {

/// Where the random number generator is: its seed, and the counters used so far.
struct rng_state {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const rng_state&, const rng_state&) = default;
};

/// That of this thread's device. Devices that are at the same number draw different ones.
template <class = void>
rng_state get_rng_state();
template <class = void>
void set_rng_state(rng_state s);

namespace detail {
template <class = void>
void restart_random_numbers(std::uint64_t seed);
}  // namespace detail

/// Restarts random numbers, of all devices, or within a device_guard of its device: the same seed
/// gives the same numbers, in all three modes, others on each device. Draws take them in the order
/// in which they are made. Which of two in one expression that is, C++ leaves open, and g++ takes
/// one order at run time and another while it compiles: in rand_like(x) - rand_like(x), dropout(a)
/// + dropout(b) or f(h(x)) + g(h(x)), where h draws, the two may be exchanged between the modes.
/// With names they are not: auto a = rand_like(x); auto b = rand_like(x); a - b.
template <class In = void>
constexpr void manual_seed(std::uint64_t seed) {
  if (!__builtin_is_constant_evaluated()) detail::restart_random_numbers<In>(seed);
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body has no generator: call manual_seed() outside");
}

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/state/generator.hpp"
#endif
