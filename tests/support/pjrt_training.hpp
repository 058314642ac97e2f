// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "catch.hpp"
#include "support/mlp.hpp"
#include "support/replica_checks.hpp"

#include "xla/parallel.hpp"
#include "xla/xla.hpp"

namespace test {

inline constexpr int steps = 5, batch_size = 8;

using floats = std::vector<float>;

inline double largest_difference(const floats& a, const floats& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return worst;
}

/// Losses and weights of some steps, on each replica.
struct outcome {
  floats losses, weights;
  std::size_t bits = 0;
};
template <class Model>
floats weights_of(Model& model) {
  floats all;
  xla::for_each_parameter(model, [&](auto& p) {
    for (const float x : p.to_vector()) all.push_back(x);
  });
  return all;
}
/// A replica's part of the batches.
template <class Step, class Model, class Optimizer>
outcome train(Step& step, Model& model, Optimizer& optimizer) {
  outcome out;
  const std::int64_t part = batch_size / xla::world_size(), mine = part * xla::global_ordinal();
  const auto of_mine = [&](const auto& all) {
    const xla::eager_mode_guard as_a_loader;  // a part of a graph it would be another on each
    return xla::narrow(all, 0, mine, part).to(xla::device());
  };
  for (int i = 0; i < steps; ++i) {
    const batch all(batch_size, static_cast<std::uint64_t>(i));
    auto data = of_mine(all.data);
    auto target = of_mine(all.target);
    out.losses.push_back(step(model, data, target, optimizer).item());
  }
  out.weights = weights_of(model);
  out.bits = bits_of(model, optimizer);
  return out;
}
/// Bytes that went to devices, and came from them, since clear_all().
inline double bytes_of(const char* metric) {
  const auto m = xla::metric_data(metric);
  return m ? m->accumulator : 0;
}
inline double bytes_sent() { return bytes_of("OutboundData"); }
inline double bytes_received() { return bytes_of("InboundData"); }

inline void check_same(const outcome& got, const outcome& wanted) {
  CHECK(largest_difference(got.losses, wanted.losses) < 2e-6);
  CHECK(largest_difference(got.weights, wanted.weights) < 2e-6);
}

}  // namespace test
