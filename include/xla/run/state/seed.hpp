// SPDX-License-Identifier: Apache-2.0
#pragma once

// manual_seed() and the state of random numbers, as programs see it. generator.hpp defines it.

#include <cstdint>
#include <stdexcept>

#include "xla/base/instance.hpp"

namespace xla {

/// The state of the random number generator: its seed, and the counters used so far.
struct rng_state {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  friend bool operator==(const rng_state&, const rng_state&) = default;
};

/// The state of this thread's device. Devices with equal states draw different numbers.
template <class = void>
rng_state get_rng_state();
template <class = void>
void set_rng_state(rng_state s);

namespace detail {
template <class = void>
void restart_random_numbers(std::uint64_t seed);
}  // namespace detail

/// Restarts the random numbers of all devices, or within a device_guard of its device. The same
/// seed gives the same numbers in all three modes, and different ones on each device. Draws consume
/// them in the order of the calls. C++ leaves open which of two draws in one expression comes
/// first, and g++ chooses one order at run time and another at compile time. So in rand_like(x) -
/// rand_like(x), dropout(a) + dropout(b) or f(h(x)) + g(h(x)), where h draws, the two may be
/// exchanged between the modes. Named values fix the order: auto a = rand_like(x); auto b =
/// rand_like(x); a - b.
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
