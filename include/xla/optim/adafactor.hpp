// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adafactor: moments by rows and columns. optimizer.hpp has the loop over parameters.

#include <limits>

#include "xla/op/clip.hpp"
#include "xla/op/minmax.hpp"
#include "xla/op/pow.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/root.hpp"
#include "xla/op/where.hpp"
#include "xla/optim/optimizer.hpp"

namespace xla::optim {

/// Hyper-parameters of Adafactor, by PyTorch's names: eps1 and eps2 are its eps. A negative eps1 is
/// the element type's epsilon, like PyTorch's None.
struct AdafactorOptions {
  Scalar lr = 1e-2;
  Scalar beta2_decay = -0.8;
  Scalar eps1 = -1;
  Scalar eps2 = 1e-3;
  Scalar d = 1;
  Scalar weight_decay = 0;

  static constexpr int states = 2;
  static constexpr bool elementwise = false;
  /// The mean squares of a matrix's rows, and of its columns; for a vector those of its elements,
  /// and an unused number.
  static constexpr bool one_along(int axis, int rank, int k) {
    return rank > 1 ? axis == rank - 1 - k : k == 1;
  }
  template <class T>
  struct shared {
    Tensor<T, 0> fresh, left, rate, least;
  };
  template <class T>
  constexpr shared<T> begin(const Tensor<T, 0>& count) const {
    const auto given = eps1.as<T>();
    return {pow(count, beta2_decay.as<T>()), 1 - lr.as<T>() * weight_decay,
            minimum(lr.as<T>(), rsqrt(count)),
            where(given < 0, std::numeric_limits<T>::epsilon(), given)};
  }
  /// Shazeer and Stern (2018), algorithms 4 and 5, in PyTorch's form.
  template <class P, class T, int R>
  constexpr void update(const shared<T>& s, P& p, const Tensor<T, R>& g, auto& row,
                        auto& column) const {
    const auto old = p.detach();
    const auto step = maximum(root_mean_square(old), eps2.as<T>()) * s.rate;
    const auto change = g * rsqrt(maximum(variance(s, g, row, column), s.least * s.least));
    const auto clipped = maximum(root_mean_square(change) / d, 1);
    p.copy_(old * s.left - change * (step / clipped));
  }
  /// Refuses values outside of PyTorch's ranges.
  template <class In = void>
  void check() const {
    check_options<In>("optim::Adafactor",
                      {{"lr", lr.value()},
                       {"beta2_decay", beta2_decay.value(), -std::numeric_limits<double>::infinity(), 0},
                       {"eps1", eps1.value(), -1},
                       {"eps2", eps2.value()},
                       {"d", d.value(), 1},
                       {"weight_decay", weight_decay.value()}});
  }
  XLA_HEADER_MODULE(lr, beta2_decay, eps1, eps2, d, weight_decay)

 private:
  static constexpr auto root_mean_square(const auto& x) { return sqrt(mean(x * x)); }
  /// For a matrix, the product of its rows' and its columns' mean squares.
  template <class T, int R>
  static constexpr Tensor<T, R> variance(const shared<T>& s, const Tensor<T, R>& g, auto& row,
                                         auto& column) {
    const auto square = g * g;
    const auto average = [&s](auto& state, const Tensor<T, R>& now) {
      const Tensor<T, R> before = state.detach();
      state.copy_(before + (now - before) * s.fresh);
      return Tensor<T, R>(state.detach());
    };
    if constexpr (R > 1) {
      const auto rows = average(row, mean(square, {-1}, keepdim));
      const auto columns = average(column, mean(square, {-2}, keepdim));
      return rows * columns / maximum(mean(rows, {-2}, keepdim), s.least);
    } else {
      return average(row, square);
    }
  }
};

/// Adam without a first moment, whose second moments of a matrix are one number per row and one per
/// column. The rate is at most lr, relative to a parameter's root mean square.
template <class Model>
struct Adafactor : Optimizer<Model, AdafactorOptions> {
  using Optimizer<Model, AdafactorOptions>::Optimizer;
};
template <class Model, class... G>
Adafactor(Model&&, AdafactorOptions, G...) -> Adafactor<optimized<Model, G...>>;
template <class Model>
Adafactor(Model&&) -> Adafactor<optimized<Model>>;
template <class... A>
Adafactor(A&&...) -> Adafactor<not_a_model<A...>>;

}  // namespace xla::optim
