// SPDX-License-Identifier: Apache-2.0
#pragma once

// Eager or traced, with gradients or without: the mode of each thread and its guards. Compiled
// functions have no mode: they run the same in both.

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/graph/graph.hpp"
#include "xla/run/state/context.hpp"

namespace xla {
namespace detail {

/// XLA_NO_TRACED leaves traced mode out of a program built with headers alone: it is eager from the
/// start, and a fifth smaller.
#if defined(XLA_NO_TRACED) && !defined(XLA_EXTERN_RUNTIME)
inline constexpr bool has_traced_mode = false;
#else
inline constexpr bool has_traced_mode = true;
#endif

[[gnu::cold]] inline thread_context::mode mode_of_environment() {
  using mode = thread_context::mode;
  const char* const e = std::getenv("XLA_EAGER");
  const std::string_view wanted(e ? e : "");
  if (!has_traced_mode) return mode::eager;
  if (wanted == "fused") return mode::fused;
  return wanted.empty() || wanted == "0" ? mode::traced : mode::eager;
}
/// The mode of threads that have not set their own.
template <class = void>
[[gnu::noinline]] std::atomic<thread_context::mode>& default_mode() {
  static std::atomic<thread_context::mode> now{mode_of_environment()};
  return now;
}
[[gnu::noinline]] inline thread_context::mode mode_now() {
  const thread_context::mode own = this_thread.own;
  return own == thread_context::mode::of_all_threads ? default_mode().load() : own;
}
/// Whether eager mode defers ops: see run/trace/sync.hpp.
inline bool fuses_eagerly() { return mode_now() == thread_context::mode::fused; }

inline void refuse_recording(thread_context::mode m) {
  if (m != thread_context::mode::eager && !has_traced_mode)
    throw runtime_error("xla: built with XLA_NO_TRACED, so eager mode cannot be left");
}

template <class = void>
void set_mode(thread_context::mode m) {
  refuse_recording(m);
  default_mode().store(m);
  this_thread.own = thread_context::mode::of_all_threads;
}

inline bool& grad_enabled() { return this_thread.grad_enabled; }

}  // namespace detail

/// The kinds of eager mode.
enum class Eager : std::int8_t {
  strict,  ///< each op at once
  /// Ops wait, and run fused as one graph when a value is read, an optimizer has made its step, the
  /// next forward pass begins, or there are many. The program sees the same results.
  fused
};

// Functions that make no sense in a compiled body are constexpr, so that they can refuse it there.
// They are templates, because a plain constexpr function must be able to succeed.

namespace detail {
constexpr thread_context::mode mode_of(bool eager) {
  return eager ? thread_context::mode::eager : thread_context::mode::traced;
}
constexpr thread_context::mode mode_of(Eager how) {
  return how == Eager::fused ? thread_context::mode::fused : thread_context::mode::eager;
}
}  // namespace detail

/// Eager mode executes each op at once; otherwise (the default) ops are recorded until sync() or
/// until a value is read. Applies to all threads except within an eager_mode_guard; XLA_EAGER=1
/// starts in eager mode.
template <class = void>
constexpr void eager_mode(bool on) {
  if (!__builtin_is_constant_evaluated()) detail::set_mode(detail::mode_of(on));
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body has no eager mode: call eager_mode() outside");
}
/// Selects one of the two kinds of eager mode. XLA_EAGER=fused starts in the one that fuses.
template <class = void>
constexpr void eager_mode(Eager how) {
  if (!__builtin_is_constant_evaluated()) detail::set_mode(detail::mode_of(how));
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body has no eager mode: call eager_mode() outside");
}
/// The mode of this thread; true for both kinds of eager mode.
inline bool is_eager_mode() { return detail::mode_now() != detail::thread_context::mode::traced; }

/// Whether ops of this thread are recorded: in traced mode, and in eager mode that fuses.
inline bool records_ops() { return detail::mode_now() != detail::thread_context::mode::eager; }

namespace detail {
template <class = void>
constexpr thread_context::mode exchange_own_mode(thread_context::mode m) {
  if (!__builtin_is_constant_evaluated()) {
    if (m != thread_context::mode::of_all_threads) refuse_recording(m);
    m = std::exchange(this_thread.own, m);
  }
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body has no eager mode: put the guard outside");
  return m;
}
}  // namespace detail

/// Eager mode, of either kind, or with false traced mode, within a scope of this thread.
class eager_mode_guard {
 public:
  constexpr explicit eager_mode_guard(bool on = true)
      : old_(detail::exchange_own_mode(detail::mode_of(on))) {}
  constexpr explicit eager_mode_guard(Eager how)
      : old_(detail::exchange_own_mode(detail::mode_of(how))) {}
  constexpr ~eager_mode_guard() { detail::exchange_own_mode(old_); }
  eager_mode_guard(const eager_mode_guard&) = delete;
  eager_mode_guard& operator=(const eager_mode_guard&) = delete;

 private:
  detail::thread_context::mode old_;
};

namespace detail {

/// Turns the recording of gradients on or off within a scope of this thread.
class grad_scope {
 public:
  explicit grad_scope(bool on) : old_(grad_enabled()) { grad_enabled() = on; }
  ~grad_scope() { grad_enabled() = old_; }
  grad_scope(const grad_scope&) = delete;
  grad_scope& operator=(const grad_scope&) = delete;

 private:
  bool old_;
};
struct no_grad_scope : grad_scope {
  no_grad_scope() : grad_scope(false) {}
};

/// Sets the precision of products within a scope: of this thread, or of a graph in constant
/// evaluation.
class product_scope {
 public:
  constexpr product_scope(graph* g, precision p) : graph_(g), old_(exchange(p)) {}
  constexpr ~product_scope() { exchange(old_); }
  product_scope(const product_scope&) = delete;
  product_scope& operator=(const product_scope&) = delete;

  /// The current precision.
  static constexpr precision now(const graph* g) {
    if (!__builtin_is_constant_evaluated()) return this_thread.products;
    return g ? g->products : precision::float32;
  }

 private:
  constexpr precision exchange(precision p) const {
    if (!__builtin_is_constant_evaluated()) return std::exchange(this_thread.products, p);
    return graph_ ? std::exchange(graph_->products, p) : p;
  }
  graph* graph_;
  precision old_;
};

}  // namespace detail
}  // namespace xla
