// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attention composed of other ops, whose steps run slice by slice, and its comparison in all modes.
#include "catch.hpp"
#include "support/modes.hpp"
#include "support/threads.hpp"
#include "xla/xla.hpp"

namespace test::slices {

/// Attention as it is composed of other ops: what runs slice by slice.
constexpr auto attention(const auto& q, const auto& k, const auto& v,
                         const xla::AttentionOptions& options = {}) {
  return xla::detail::attend(q, k, v, xla::detail::unknown_caller,
                             xla::detail::weigh_all<float>{options});
}

/// The gradients of attention whose result other steps take apart before it is used, as layers do.
template <bool Causal>
constexpr auto attend = [](auto& q, auto& k, auto& v) {
  auto y = attention(q, k, v, {.causal = Causal});
  xla::sum(xla::tanh(xla::transpose(y, 1, 2))).backward();
  return y;
};

/// Queries, keys and values of (batch, heads, length, width), gradients wanted.
struct inputs {
  xla::Parameter<float, 4> q, k, v;
  inputs(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t queries,
         std::int64_t keys, std::int64_t width)
      : q(parameter(numbers<float>({batch, heads, queries, width}, 1))),
        k(parameter(numbers<float>({batch, kv_heads, keys, width}, 2))),
        v(parameter(numbers<float>({batch, kv_heads, keys, width}, 3))) {}
};

template <class F>
void check_all(F f, const inputs& x, const auto&... more) {
  const snapshot eager = run_mode<mode::eager>(f, x.q, x.k, x.v, more...);
  for (int n : {1, 2, 3}) {
    const restore_threads some(n);
    CAPTURE(n);
    const auto traced = run_mode<mode::traced>(f, x.q, x.k, x.v, more...);
    CHECK(traced.difference(eager) == "");
    const auto compiled = run_mode<mode::compiled>(f, x.q, x.k, x.v, more...);
    CHECK(compiled.difference(eager) == "");
  }
}

}  // namespace test::slices
