// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "xla/base/error.hpp"

namespace xla {
namespace detail {

/// XLA_NO_TRACED leaves traced mode out of a program that is built of headers alone: it is eager
/// from the start, and a fifth smaller.
#if defined(XLA_NO_TRACED) && !defined(XLA_EXTERN_RUNTIME)
inline constexpr bool has_traced_mode = false;
#else
inline constexpr bool has_traced_mode = true;
#endif

struct modes {
  std::atomic<bool> eager;
  static modes& instance() {
    static modes m{[] {
      const char* e = std::getenv("XLA_EAGER");
      return !has_traced_mode || (e && std::string_view(e) != "0" && *e != '\0');
    }()};
    return m;
  }
  bool exchange(bool on) {
    if (!on && !has_traced_mode)
      throw error("xla: built with XLA_NO_TRACED, so eager mode cannot be left");
    return eager.exchange(on);
  }
};

inline bool& grad_enabled() {
  static thread_local bool on = true;
  return on;
}

}  // namespace detail

// Functions that have no meaning in a compiled body are constexpr to say so there; and templates,
// because a plain constexpr function must be able to succeed.

/// Eager mode executes each op at once; otherwise (the default) ops are recorded until sync() or
/// until a value is read. For the whole process; XLA_EAGER=1 starts in eager mode.
template <class = void>
constexpr void eager_mode(bool on) {
  if (!__builtin_is_constant_evaluated()) detail::modes::instance().exchange(on);
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body has no eager mode: call eager_mode() outside");
}
inline bool is_eager_mode() { return detail::modes::instance().eager.load(); }

namespace detail {
template <class = void>
constexpr bool exchange_eager_mode(bool on) {
  bool old = false;
  if (!__builtin_is_constant_evaluated()) old = modes::instance().exchange(on);
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body has no eager mode: put the guard outside");
  return old;
}
}  // namespace detail

/// Eager mode within a scope.
class eager_mode_guard {
 public:
  constexpr explicit eager_mode_guard(bool on = true) : old_(detail::exchange_eager_mode(on)) {}
  constexpr ~eager_mode_guard() { detail::exchange_eager_mode(old_); }
  eager_mode_guard(const eager_mode_guard&) = delete;
  eager_mode_guard& operator=(const eager_mode_guard&) = delete;

 private:
  bool old_;
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

}  // namespace detail
}  // namespace xla
