// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/optim.inc"
#include "support/modes.hpp"
#include "support/stored.hpp"

namespace test {

/// The model of tests/reference/optim.py.
struct Weights {
  xla::Parameter<float, 2> w{{5, 7}};
  xla::Parameter<float, 1> b{{7}};
  XLA_MODULE(w, b)
};

inline Weights make_weights() {
  Weights m;
  m.w.copy_(numbers<float>({5, 7}, 1));
  m.b.copy_(numbers<float>({7}, 2));
  return m;
}

/// Its loss, whose gradient is w - x for w and 2 b for b.
constexpr auto weights_loss(auto& model, auto& x) {
  const auto d = model.w - x;
  return sum(d * d) * 0.5 + sum(model.b * model.b);
}

/// Both parameters, one after the other, against stored numbers.
inline void check_weights(const Weights& m, const std::vector<double>& want) {
  const auto split = want.begin() + 35;
  check_stored(m.w, {want.begin(), split});
  check_stored(m.b, {split, want.end()});
}

}  // namespace test
