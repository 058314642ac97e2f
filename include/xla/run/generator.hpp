// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "xla/base/fork.hpp"
#include "xla/kernel/philox.hpp"
#include "xla/run/mode.hpp"
#include "xla/run/recording.hpp"
#include "xla/run/seed.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla {

namespace detail {

/// The generator of a device. Tensors take successive counters in the order in which a program
/// makes them, the same in every mode.
class generator {
 public:
  /// Of this thread's device.
  static generator& instance() {
    return part_of_device(this_thread.device->random);
  }
  static constexpr fork_order order = fork_order::stores;
  void before_fork() noexcept { lock_.lock(); }
  void after_fork(bool) noexcept { lock_.unlock(); }
  /// Reserves counters; the result is the state before.
  rng_state take(std::uint64_t counters) {
    const std::lock_guard hold(lock_);
    return {state_.seed, std::exchange(state_.offset, state_.offset + counters)};
  }
  /// Goes back from one state to an earlier one, if nobody has taken more since.
  [[gnu::cold]] void give_back(rng_state from, rng_state to) noexcept {
    const std::lock_guard hold(lock_);
    if (state_ == from) state_ = to;
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

/// The counters that a random op takes; a block of four words serves four floats or two doubles.
template <class In = void>
inline std::uint64_t random_counters(const shape& dims, dtype type) {
  return philox_blocks(count(dims), static_cast<std::size_t>(size_of(type)));
}

/// After a step was taken back: numbers of tensors that were not held are drawn again.
template <class In>
[[gnu::cold, gnu::noinline]] void settle_draws(later<In, recording>& r) {
  const std::lock_guard planning(r.planning);
  r.gives_back = false;
  std::uint64_t end = r.drawn_from;
  {
    const std::lock_guard hold(r.links);
    for (const impl* t = r.first; t; t = t->pending_next)
      if (t->op->impure && static_cast<std::uint64_t>(t->attr) == r.seed)
        end = std::max(end, static_cast<std::uint64_t>(t->size) + random_counters(t->dims, t->type));
  }
  end = std::min(end, r.drawn_to);
  generator::instance().give_back({r.seed, r.drawn_to}, {r.seed, end});
  r.drawn_to = end;
}

template <class In = void>
void settle_draws() {
  if (auto* const r = this_thread.recording; r && r->gives_back) settle_draws<In>(*r);
}

/// Draws numbers for a tensor that this thread records or executes.
template <class In = void>
void draw(impl& t) {
  settle_draws<In>();
  const std::uint64_t counters = random_counters(t.dims, t.type);
  const rng_state s = generator::instance().take(counters);
  t.attr = static_cast<std::int64_t>(s.seed);
  t.size = static_cast<extent>(s.offset);
  if (!is_eager_mode()) own_recording<In>().drew(s.seed, s.offset, counters);
}

/// Counters for something that may fail: they go back at the end of a scope unless they are used.
class drawing {
 public:
  explicit drawing(std::uint64_t counters)
      : drawing(counters ? generator::instance().take(counters) : rng_state{}, counters) {}
  /// Of counters that were taken at a state.
  drawing(rng_state from, std::uint64_t counters) : counters_(counters), from_(from) {}
  drawing(const drawing&) = delete;
  ~drawing() {
    if (counters_)
      generator::instance().give_back({from_.seed, from_.offset + counters_}, from_);
  }
  rng_state from() const noexcept { return from_; }
  void used() noexcept { counters_ = 0; }

 private:
  std::uint64_t counters_;
  rng_state from_;
};

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

}  // namespace xla
