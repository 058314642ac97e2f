// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <sstream>
#include <tuple>

#include "support/reference.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/reshape.hpp"
#include "xla/run/trace/backward.hpp"

namespace test {

/// One number of a result: its elements with a different weight each, none of them zero.
template <class T, int R>
constexpr auto weighted_sum(const xla::Tensor<T, R>& y) {
  const auto all = xla::flatten(y);
  return xla::sum(all * (xla::arange<T>(all.numel()) * 0.375 - 1.0625));
}

template <int R>
xla::Tensor<double, R> from_vector(const std::vector<double>& v, const sizes_t& sizes) {
  xla::Size s[R > 0 ? R : 1] = {};
  for (int i = 0; i < R; ++i) s[i] = sizes[static_cast<std::size_t>(i)];
  if constexpr (R == 0) return xla::tensor(v[0]);
  else return xla::from_blob(v.data(), s);
}

/// The gradients of weighted_sum(f(x...)), f on double, against central differences.
template <class F, int... R>
void check_gradient(F f, const xla::Tensor<double, R>&... x) {
  const xla::eager_mode_guard eager;
  const std::array<std::vector<double>, sizeof...(R)> values{x.to_vector()...};
  const std::array<sizes_t, sizeof...(R)> sizes{x.sizes()...};
  std::tuple<xla::Parameter<double, R>...> p{xla::Parameter<double, R>::like(x)...};

  auto fill = [&]<std::size_t I>(std::integral_constant<std::size_t, I>,
                                 const std::vector<double>& v) {
    auto& q = std::get<I>(p);
    q.copy_(from_vector<std::tuple_element_t<I, std::tuple<xla::Tensor<double, R>...>>::rank>(
        v, sizes[I]));
  };
  auto all = [&]<std::size_t... I>(std::index_sequence<I...>, auto one) {
    (one(std::integral_constant<std::size_t, I>{}), ...);
  };
  const auto indices = std::index_sequence_for<xla::Tensor<double, R>...>{};
  all(indices, [&](auto i) { fill(i, values[i]); });

  const auto loss = std::apply([&](auto&... q) { return weighted_sum(f(q...)); }, p);
  loss.backward();
  auto value = [&] {
    return std::apply([&](auto&... q) { return weighted_sum(f(q...)).item(); }, p);
  };
  all(indices, [&](auto i) {
    const auto g = std::get<i>(p).grad();
    REQUIRE(g.defined());
    CHECK(g.sizes() == sizes[i]);
    const std::vector<double> analytic = g.to_vector();
    std::vector<double> v = values[i];
    for (std::size_t k = 0; k < v.size(); ++k) {
      const double old = v[k];
      const auto difference = [&](double h) {
        h *= std::max(1.0, std::abs(old));
        v[k] = old + h;
        fill(i, v);
        const double up = value();
        v[k] = old - h;
        fill(i, v);
        const double down = value();
        v[k] = old;
        return (up - down) / (2 * h);
      };
      const auto near = [&](double numeric) {
        return std::abs(numeric - analytic[k]) <= 1e-6 * std::max(1.0, std::abs(numeric));
      };
      if (near(difference(1e-5))) continue;
      // Where third derivatives are large: Richardson's extrapolation.
      const double numeric = (4 * difference(5e-5) - difference(1e-4)) / 3;
      if (near(numeric)) continue;
      std::ostringstream s;
      s.precision(17);
      s << "input " << std::size_t(i) << ", element " << k << ": the gradient is " << analytic[k]
        << ", differences give " << numeric;
      FAIL_CHECK(s.str());
      break;
    }
    fill(i, values[i]);
  });
  SUCCEED();
}

}  // namespace test
