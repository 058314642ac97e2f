// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace xla {
namespace detail {

struct modes {
  std::atomic<bool> eager;
  static modes& instance() {
    static modes m{[] {
      const char* e = std::getenv("XLA_EAGER");
      return e && std::string_view(e) != "0" && *e != '\0';
    }()};
    return m;
  }
};

inline bool& grad_enabled() {
  static thread_local bool on = true;
  return on;
}

}  // namespace detail

/// Eager mode executes each op at once; otherwise (the default) ops are recorded until sync() or
/// until a value is read. For the whole process; XLA_EAGER=1 starts in eager mode.
inline void eager_mode(bool on) { detail::modes::instance().eager.store(on); }
inline bool is_eager_mode() { return detail::modes::instance().eager.load(); }

/// Eager mode within a scope.
class eager_mode_guard {
 public:
  explicit eager_mode_guard(bool on = true) : old_(is_eager_mode()) { eager_mode(on); }
  ~eager_mode_guard() { eager_mode(old_); }
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
