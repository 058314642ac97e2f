// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <type_traits>
#include <vector>

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

template <int R>
void fill(xla::Parameter<double, R>& p, const std::vector<double>& v) {
  p.copy_(from_vector<R>(v, p.sizes()));
}

/// A number that depends on the elements of an input, by reference. What checks such numbers is
/// compiled once, and not with every function that a test runs.
class number_of {
 public:
  template <class F>
    requires(!std::is_same_v<F, number_of>)
  number_of(const F& f)
      : f_(&f), call_([](const void* g, const std::vector<double>& v) {
          return (*static_cast<const F*>(g))(v);
        }) {}
  double operator()(const std::vector<double>& v) const { return call_(f_, v); }

 private:
  const void* f_;
  double (*call_)(const void*, const std::vector<double>&);
};

/// The gradient of f at v against central differences.
void check_differences(std::size_t input, const std::vector<double>& analytic,
                       std::vector<double> v, number_of f);

/// The gradients of weighted_sum(f(x...)), f on double, against central differences.
template <class F, int... R>
void check_gradient(F f, const xla::Tensor<double, R>&... x) {
  const xla::eager_mode_guard eager;
  std::tuple<xla::Parameter<double, R>...> p{xla::Parameter<double, R>::like(x)...};
  std::apply([&](auto&... q) { (q.copy_(x), ...); }, p);
  const auto loss = [&] {
    return std::apply([&](auto&... q) { return weighted_sum(f(q...)); }, p);
  };
  loss().backward();

  std::size_t input = 0;
  const auto check = [&]<int N>(xla::Parameter<double, N>& q) {
    const auto g = q.grad();
    REQUIRE(g.defined());
    check_sizes(g.sizes(), q.sizes());
    const std::vector<double> at = q.to_vector();
    check_differences(input++, g.to_vector(), at, [&](const std::vector<double>& v) {
      fill(q, v);
      return loss().item();
    });
    fill(q, at);
  };
  std::apply([&](auto&... q) { (check(q), ...); }, p);
}

}  // namespace test

#ifndef XLA_TEST_LINKED  // a test of one source, built by hand
#include "support/gradient.cpp"
#endif
