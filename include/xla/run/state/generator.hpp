// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of random numbers: the counters of each draw. The numbers themselves are a function of
// counter and seed (kernel/random/philox.hpp).

#include <algorithm>
#include <cstdint>
#include <utility>

#include "xla/base/fork.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/graph/builtin.hpp"
#include "xla/kernel/random/philox.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/state/recording.hpp"
#include "xla/run/state/seed.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla {

namespace detail {

/// The random number generator of a device. Tensors take successive counters, in the order in which
/// a program makes them; that order is the same in every mode. Equal numbers of draws give equal
/// offsets on all devices; the streams of devices are 2^48 counters apart, by
/// device_context::random_stream().
class generator {
 public:
  /// The generator of this thread's device; callers of the functions below must be on it.
  static generator& instance() { return made_once(this_thread.device->random); }
  static constexpr fork_order order = fork_order::stores;
  void before_fork() noexcept { lock_.lock(); }
  void after_fork(bool) noexcept { lock_.unlock(); }
  /// Reserves counters; returns the previous state.
  rng_state take(std::uint64_t counters) {
    const std::lock_guard hold(lock_);
    return {state_.seed, first() + std::exchange(state_.offset, state_.offset + counters)};
  }
  /// The state that the next draw gets.
  rng_state next() {
    const std::lock_guard hold(lock_);
    return {state_.seed, first() + state_.offset};
  }
  /// Returns counters that were reserved at a state, unless others have been reserved since.
  [[gnu::cold]] void give_back(rng_state at, std::uint64_t counters) noexcept {
    const std::lock_guard hold(lock_);
    const std::uint64_t offset = at.offset - first();
    if (state_.seed == at.seed && state_.offset == offset + counters) state_.offset = offset;
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
  static std::uint64_t first() {
    return static_cast<std::uint64_t>(this_thread.device->random_stream()) << 48;
  }
  spin_lock lock_;
  rng_state state_{.seed = the_process.seed.load()};
};

/// Reserves counters for an operation that may fail: they are returned at the end of the scope
/// unless they are used.
class drawing {
 public:
  explicit drawing(std::uint64_t counters)
      : counters_(counters), from_(counters ? generator::instance().take(counters) : rng_state{}) {}
  drawing(const drawing&) = delete;
  ~drawing() {
    if (counters_) generator::instance().give_back(from_, counters_);
  }
  rng_state from() const noexcept { return from_; }
  void used() noexcept { counters_ = 0; }

 private:
  std::uint64_t counters_;
  rng_state from_;
};

/// The counters that a random op takes; a block of four words serves four floats or two doubles.
template <class In = void>
inline std::uint64_t random_counters(const shape& dims, dtype type) {
  return philox_blocks(count(dims), static_cast<std::size_t>(size_of(type)));
}

/// The counters of a pending tensor, its own or those of a function that it calls; `from` is set to
/// the first.
[[gnu::cold]] inline std::uint64_t counters_of(const impl& t, rng_state& from) {
  const auto [seed, offset] = unpack<op::drawing::drawn>(t.attr);
  from = {seed, offset};
  if (t.op->impure) return random_counters(t.dims_shape(), t.type);
  return is<op::call>(t) ? static_cast<std::uint64_t>(t.attr.size) : 0;
}

/// After a rollback: the counters of unreferenced tensors are reused.
template <class In>
[[gnu::cold, gnu::noinline]] void settle_draws(dependent<In, recording>& r) {
  const std::lock_guard planning(r.planning);
  r.gives_back = false;
  std::uint64_t end = r.drawn_from;
  {
    const std::lock_guard hold(r.links);
    for (const impl* t = r.first; t; t = t->pending_next)
      if (rng_state from; const std::uint64_t counters = counters_of(*t, from))
        if (from.seed == r.seed) end = std::max(end, from.offset + counters);
  }
  end = std::min(end, r.drawn_to);
  generator::instance().give_back({r.seed, end}, r.drawn_to - end);
  r.drawn_to = end;
}

template <class In = void>
void settle_draws() {
  if (auto* const r = this_thread.recording; r && r->gives_back) settle_draws<In>(*r);
}

}  // namespace detail

template <class>
rng_state get_rng_state() {
  detail::settle_draws();
  return detail::generator::instance().get();
}
XLA_INSTANCE(rng_state get_rng_state<void>());

template <class>
void set_rng_state(rng_state s) {
  detail::generator::instance().set(s);
}
XLA_INSTANCE(void set_rng_state<void>(rng_state));

namespace detail {
template <class>
[[gnu::cold]] void restart_random_numbers(std::uint64_t seed) {
  recording::refuse_in_body();
  if (this_thread.chose) return generator::instance().set({seed, 0});
  the_process.seed.store(seed);
  for (device_context& d : the_devices)
    if (generator* const own = d.random.load()) own->set({seed, 0});
}
XLA_INSTANCE(void restart_random_numbers<void>(std::uint64_t));
}  // namespace detail

}  // namespace xla
