// SPDX-License-Identifier: Apache-2.0
#pragma once

// Trace, StepTrace, trace_me(): named scopes of the program, which profiles show. It is not in
// xla.hpp; profile.hpp takes the profile.

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "xla/run/state/mode.hpp"
#include "xla/run/state/scope_watch.hpp"
#include "xla/run/trace/sync.hpp"

namespace xla {

/// Names a scope of a thread in profiles, like torch_xla.debug.profiler.Trace: when it was entered,
/// how long it took, and what ran in it. That is nested scopes, ops of eager mode, and calls of
/// compiled functions and graphs.
///
///     for (auto [data, target] : loader) {
///       const xla::StepTrace step("train");
///       const xla::Trace forward("forward");
///       …
///
/// A scope counts if it begins and ends within a recording (xla::profile, ProfileRecording,
/// XLA_PROFILE); otherwise it costs a load and a comparison. In traced mode it is the time in which
/// ops are recorded; their graph runs at sync(), which can be in a scope as well. In the body of a
/// compiled function it has no effect: there each step shows its ops and its line.
class Trace {
 public:
  constexpr explicit Trace(std::string_view name) : Trace(name, -1) {}
  constexpr ~Trace() {
    if (watch_) leave();
  }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

 protected:
  constexpr Trace(std::string_view name, std::int64_t step) {
    if (!__builtin_is_constant_evaluated()) {
      watch_ = detail::the_process.scopes.load(std::memory_order_acquire);
      if (watch_) enter(name, step);
    }
  }

 private:
  [[gnu::cold]] void enter(std::string_view name, std::int64_t step) {
    name_ = new std::string(name);
    step_ = step;
    outer_ = std::exchange(detail::this_thread.scopes, watch_);
    start_ = detail::now_ns();
  }
  [[gnu::cold]] void leave() noexcept {
    watch_->left(*watch_, *name_, step_, start_, detail::now_ns());
    detail::this_thread.scopes = outer_;
    delete name_;
  }

  detail::scope_watch* watch_ = nullptr;
  detail::scope_watch* outer_ = nullptr;
  std::string* name_ = nullptr;  // owned; null while nothing is recorded
  std::int64_t step_ = -1, start_ = 0;
};

/// The scope of a training step, like torch_xla.debug.profiler.StepTrace. In traced mode its end
/// calls sync(), whose errors it throws. The number is for the reader.
class StepTrace : public Trace {
 public:
  constexpr explicit StepTrace(std::string_view name, std::int64_t number = -1)
      : Trace(name, number) {
    if (!__builtin_is_constant_evaluated()) thrown_ = std::uncaught_exceptions();
  }
  constexpr ~StepTrace() noexcept(false) {
    if (!__builtin_is_constant_evaluated()) end<void>();
  }

 private:
  template <class In>
  void end() const {
    if (!is_eager_mode() && std::uncaught_exceptions() == thrown_) sync<In>();
  }
  int thrown_ = 0;
};

/// f within a scope of that name, like torch_xla.debug.profiler.trace_me: the result is called like
/// f. The name is a literal, or outlives it.
template <class F>
constexpr auto trace_me(std::string_view name, F f) {
  return [name, f = std::move(f)](auto&&... a) -> decltype(auto) {
    const Trace scope(name);
    return f(std::forward<decltype(a)>(a)...);
  };
}

}  // namespace xla
