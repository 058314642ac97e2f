// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/modes.hpp"
#include "support/steps.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/loss.hpp"
#include "xla/op/relu.hpp"
#include "xla/optim/sgd.hpp"
#include "xla/run/state/metrics.hpp"

namespace test {

/// The contract's model, smaller.
struct Mlp {
  xla::nn::Linear fc1{17, 33}, fc2{33, 5};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc2)
};

/// A batch whose classes can be learned: the class is the largest of the first five inputs.
struct batch {
  xla::Tensor<float, 2> data;
  xla::Tensor<std::int64_t, 1> target;

  explicit batch(std::int64_t n, std::uint64_t seed = 0) {
    std::vector<float> x;
    std::vector<std::int64_t> t;
    for (std::int64_t i = 0; i < 17 * n; ++i)
      x.push_back(number<float>(seed, static_cast<std::uint64_t>(i)) / 4);
    for (const float* p = x.data(); p != x.data() + x.size(); p += 17)
      t.push_back(std::max_element(p, p + 5) - p);
    data = xla::from_blob(x.data(), {n, 17});
    target = xla::tensor(t);
  }
};

template <class... X>
snapshot add_state(snapshot s, X&... x) {
  auto one = [&](auto& v) {
    if constexpr (xla::detail::optimizer_like<decltype(v)>)
      v.visit_state([&](auto& state, auto) { s.add(state); });
    else s.add(v);
  };
  (one(x), ...);
  return s;
}

/// Everything that a module or optimizer holds: values, gradients, momentum.
template <class... X>
snapshot state_of(X&... x) {
  return add_state(snapshot(), x...);
}
/// The same but for gradients.
template <class... X>
snapshot values_of(X&... x) {
  return add_state(snapshot(false), x...);
}
inline std::int64_t count_of(const char* counter) {
  return xla::counter_value(counter).value_or(0);
}

}  // namespace test
