// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "support/reference.hpp"
#include "xla/op/reduce.hpp"
#include "xla/run/trace/backward.hpp"

namespace test {

/// What PyTorch computed, by case; written by the generators of tests/reference.
class pytorch {
 public:
  struct result {
    sizes_t sizes;
    std::vector<double> elements;
  };
  static pytorch& instance();
  const result& find(const std::string& name);
  /// The states of a model of torchvision's, timm's or Hugging Face's, in order: "conv1.weight 64 3
  /// 7 7".
  const std::vector<std::string>& states(const std::string& model);
  /// For tests/reference.cmake, which looks for cases that nobody looks up.
  ~pytorch();

 private:
  pytorch();
  void read(const char* path);

  std::map<std::string, result> results_;
  std::map<std::string, std::vector<std::string>> states_;
  std::set<std::string> used_;
};

/// Numbers of ours against PyTorch's: see below.
template <class T>
void check_pytorch_elements(const std::string& name, const T* got, const sizes_t& sizes,
                            double tolerance) {
  INFO(name);
  const auto& want = pytorch::instance().find(name);
  check_sizes(sizes, want.sizes);
  REQUIRE(product(sizes) == static_cast<std::int64_t>(want.elements.size()));
  for (std::size_t i = 0; i < want.elements.size(); ++i) {
    const double a = static_cast<double>(got[i]);
    const double b = static_cast<double>(static_cast<T>(want.elements[i]));
    const bool same = (a == b && (a != 0 || tolerance > 0 || std::signbit(a) == std::signbit(b))) ||
                      (std::isnan(a) && std::isnan(b)) ||
                      (std::isfinite(b) && tolerance > 0 &&
                       std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b)));
    if (same) continue;
    std::ostringstream s;
    s.precision(9);
    s << "element " << i << " is " << a << ", PyTorch's " << b;
    FAIL_CHECK(s.str());
    return;
  }
  SUCCEED();
}
extern template void check_pytorch_elements(const std::string&, const float*, const sizes_t&,
                                            double);
extern template void check_pytorch_elements(const std::string&, const double*, const sizes_t&,
                                            double);

/// A result of ours against PyTorch's: within a tolerance that is relative above 1 and absolute
/// below; NaN, infinities and the sizes exactly. With tolerance 0 zeros have PyTorch's sign.
template <class T, int R>
void check_pytorch(const std::string& name, const xla::Tensor<T, R>& got, double tolerance) {
  check_pytorch_elements(name, got.data(), got.sizes(), tolerance);
}

/// The result of f and the gradients of its float inputs against PyTorch's; eager.
/// Gradients may be sums of many: they are allowed some more.
template <class F, class... T, int... R>
void check_pytorch(const std::string& name, double tolerance, F f, const xla::Tensor<T, R>&... x) {
  const xla::eager_mode_guard eager;
  std::tuple<xla::Parameter<T, R>...> p{xla::Parameter<T, R>::like(x)...};
  std::apply([&](auto&... q) { (q.copy_(x), ...); }, p);
  const auto y = std::apply([&](auto&... q) { return f(q...); }, p);
  check_pytorch(name, y, tolerance);
  using Y = std::remove_cvref_t<decltype(y)>;
  if constexpr (std::is_floating_point_v<typename Y::value_type>) {
    const sizes_t sizes = y.sizes();
    xla::Size s[Y::rank > 0 ? Y::rank : 1] = {1};
    for (std::size_t i = 0; i < sizes.size(); ++i) s[i] = sizes[i];
    const auto weights = xla::reshape(numbers<typename Y::value_type>(s, 99), s);
    xla::sum(y * weights).backward();
    int k = 0;
    std::apply(
        [&](auto&... q) {
          (check_pytorch(name + "/grad" + std::to_string(k++),
                         q.grad().defined() ? q.grad() : zeros_like(q.detach()), tolerance + 5e-7),
           ...);
        },
        p);
  }
}

}  // namespace test

#ifndef XLA_TEST_LINKED  // a test of one source, built by hand
#include "support/pytorch.cpp"
#endif
