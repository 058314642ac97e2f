// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <string>
#include <utility>

#include "support/pytorch.hpp"
#include "xla/functions.hpp"

namespace test {

/// What the forms of cmake/pytorch_functions.txt read, by the names that they have there, and how
/// their results are compared with forms.txt. tests/forms.cmake makes the lines FORM, ASSIGNED and
/// RANDOM from that table; forms.py has the same inputs.
struct forms {
  xla::Tensor<float, 2> x, y;
  xla::Tensor<float, 1> v, w;
  xla::Tensor<float, 3> b;
  xla::Tensor<float, 4> z;
  xla::Tensor<bool, 2> m;
  xla::Tensor<std::int64_t, 1> i, k;
  xla::Tensor<std::int64_t, 2> j;
  float s = 0;
  const float* pointer = nullptr;

  /// Ordinary numbers, or NaN, infinities, zeros of both signs, large and small ones.
  void reset(bool special);

  template <class X>
  void check(const std::string& name, const X& got) {
    if constexpr (requires { typename X::value_type; X::rank; }) check_tensor(name, got);
    else if constexpr (std::convertible_to<X, xla::Size>) check_number(name, xla::Size(got));
    else check_each(name, got);
  }

  /// Mean and deviation of each element of many samples of f against PyTorch's.
  template <class F>
  void check_random(const std::string& name, F f) {
    constexpr int samples = 20000;
    xla::manual_seed(7);
    std::vector<double> sum, squares;
    for (int sample = 0; sample < samples; ++sample) {
      const auto drawn = f().to_vector();
      sum.resize(drawn.size()), squares.resize(drawn.size());
      for (std::size_t e = 0; e < drawn.size(); ++e)
        sum[e] += drawn[e], squares[e] += drawn[e] * drawn[e];
    }
    std::vector<double> mean, deviation;
    for (std::size_t e = 0; e < sum.size(); ++e) {
      mean.push_back(sum[e] / samples);
      deviation.push_back(std::sqrt(std::max(0., squares[e] / samples - mean[e] * mean[e])));
    }
    const sizes_t sizes{static_cast<std::int64_t>(sum.size())};
    check_pytorch_elements("forms/" + name + "/mean", mean.data(), sizes, 0.1);
    check_pytorch_elements("forms/" + name + "/deviation", deviation.data(), sizes, 0.1);
  }

 private:
  void check_number(const std::string& name, xla::Size got) {
    const double number = static_cast<double>(std::int64_t(got));
    check_pytorch_elements("forms/" + name, &number, {}, 0.);
  }
  template <class T, int R>
  void check_tensor(const std::string& name, const xla::Tensor<T, R>& got) {
    if constexpr (std::is_same_v<T, float>) check_pytorch("forms/" + name, got, 4e-6);
    else check_pytorch("forms/" + name, xla::cast<double>(got), 4e-6);
  }
  template <class A, class B>
  void check_each(const std::string& name, const std::pair<A, B>& got) {
    check(name + "/0", got.first), check(name + "/1", got.second);
  }
  template <class A, std::size_t N>
  void check_each(const std::string& name, const std::array<A, N>& got) {
    for (std::size_t e = 0; e < N; ++e) check(name + "/" + std::to_string(e), got[e]);
  }
};

}  // namespace test

// A form that is an expression.
#define FORM(name, ...) reset(special), check(name + kind, __VA_ARGS__);
// One that assigns to a variable, which is what is compared.
#define ASSIGNED(name, variable, ...) \
  reset(special);                     \
  __VA_ARGS__;                        \
  check(name + kind, variable);
// One that draws.
#define RANDOM(name, ...) \
  if (!special) reset(special), check_random(name, [&] { return __VA_ARGS__; });
