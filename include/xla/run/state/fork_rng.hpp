// SPDX-License-Identifier: Apache-2.0
#pragma once

// fork_rng(): runs code that draws random numbers without affecting later ones, such as a
// validation during training.

#include <stdexcept>
#include <utility>

#include "xla/base/compiler.hpp"
#include "xla/run/state/seed.hpp"

namespace xla {
namespace detail {

template <class In>
class basic_rng_scope {
 public:
  basic_rng_scope() : before_(get_rng_state<In>()) {}
  ~basic_rng_scope() { set_rng_state<In>(before_); }
  basic_rng_scope(const basic_rng_scope&) = delete;
  basic_rng_scope& operator=(const basic_rng_scope&) = delete;

 private:
  rng_state before_;
};

template <class Body>
auto run_forked(Body&& body) {
  const basic_rng_scope<void> back;
  return std::forward<Body>(body)();
}

}  // namespace detail

/// Runs a body and returns its result. Afterwards, also if it throws, the random numbers of this
/// thread's device continue as if nothing had been drawn, like after xm.fork_rng() of PyTorch/XLA:
///   const auto accuracy = xla::fork_rng([&] { return validate(model); });
template <class Body>
constexpr auto fork_rng(Body&& body) {
  if (!__builtin_is_constant_evaluated()) return detail::run_forked(std::forward<Body>(body));
  if (__builtin_is_constant_evaluated())
    throw std::logic_error("xla: a compiled body has no generator: call fork_rng() outside");
  XLA_UNREACHABLE();
}

}  // namespace xla
