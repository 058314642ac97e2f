// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>

#include "support/modes.hpp"
#include "xla/xla.hpp"

namespace test {

/// A tensor that requires a gradient, or not.
template <class T = float>
auto input(bool requires_grad, int seed = 1) {
  auto x = numbers<T>({6, 5}, seed);
  x.requires_grad_(requires_grad);
  return x;
}

template <class X>
void add_state(snapshot& all, const X& x) {
  all.add(x);
  if constexpr (xla::detail::is_tensor<X>) {
    all.add(xla::tensor<bool>({x.requires_grad(), x.grad().defined()}));
    if (x.grad().defined()) all.add(x.grad());
  }
}

/// What calls with the arguments that make() gives have returned and left there.
snapshot run_calls(auto&& f, auto make, int calls) {
  xla::manual_seed(3);
  auto arguments = make();
  snapshot all;
  for (int i = 0; i < calls; ++i) {
    std::apply([&](auto&... x) { all.add(f(x...)); }, arguments);
    xla::sync();
    std::apply([&](auto&... x) { (add_state(all, x), ...); }, arguments);
  }
  return all;
}

inline constexpr auto few_passes =
    xla::tags::verified & xla::tags::without<"share", "dead", "recompute">;

template <xla::Passes Wanted = xla::tags::verified>
void check(auto f, auto make) {
  constexpr int calls = 3;
  const xla::eager_mode_guard guard;
  const auto eager = run_calls(f, make, calls);
  auto compiled = xla::compile<Wanted>(f);
  CHECK(run_calls(compiled, make, calls).difference(eager) == "");
  {
    INFO("interpreted");
    const on_backend op_by_op("interpreter");
    CHECK(run_calls(compiled, make, calls).difference(eager) == "");
  }
  xla::eager_mode(false);
  INFO("traced");
  CHECK(run_calls(f, make, calls).difference(eager) == "");
}

/// Calls check with f as it runs in each mode.
void in_every_mode(auto f, auto check) {
  auto compiled = xla::compile<xla::tags::verified>(f);
  for (const bool on : {true, false}) {
    INFO((on ? "eager" : "traced"));
    const xla::eager_mode_guard guard(on);
    check([&](auto&... x) {
      f(x...);
      xla::sync();
    });
    INFO("compiled");
    check(compiled);
  }
  INFO("interpreted");
  const on_backend op_by_op("interpreter");
  check(compiled);
}

}  // namespace test
