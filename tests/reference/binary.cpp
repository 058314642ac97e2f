// SPDX-License-Identifier: Apache-2.0
#include "support/pytorch.hpp"
#include "xla/op/abs.hpp"
#include "xla/xla.hpp"

using test::check_pytorch;
using test::numbers;

namespace {

const auto same = [](const auto& x) { return x; };
const auto positive = [](const auto& x) { return abs(x) + 0.1f; };

// The cases of binary() in make.py.
xla::Tensor<float, 1> special(bool huge) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  if (!huge) return xla::tensor<float>({nan, inf, -inf, 0.f, -0.f, 1, -1, 0.5, -2.5, 88, 3});
  return xla::tensor<float>(
      {nan, inf, -inf, 0.f, -0.f, 1, -1, 0.5, -2.5, 1e30f, -1e30f, 1e-30f, 88, -88, 20.5, 3});
}

template <class F, class Shift = decltype(same)>
void binary(const std::string& name, double tolerance, F f, Shift shift = same, bool huge = true) {
  const xla::eager_mode_guard eager;
  check_pytorch(name + "/same", tolerance, f, shift(numbers<float>({3, 5})),
                numbers<float>({3, 5}, 1));
  check_pytorch(name + "/broadcast", tolerance, f, shift(numbers<float>({3, 1, 5})),
                numbers<float>({4, 1}, 1));
  check_pytorch(name + "/scalar", tolerance, f, shift(numbers<float>({3, 5})),
                numbers<float>({1}, 1)[0]);
  check_pytorch(name + "/empty", tolerance, f, shift(numbers<float>({0, 5})),
                numbers<float>({1, 5}, 1));
  check_pytorch(
      name + "/transposed", tolerance,
      [f](const auto& a, const auto& b) { return f(transpose(a), transpose(b)); },
      shift(numbers<float>({5, 3})), numbers<float>({1, 3}, 1));
  const auto s = special(huge);
  const auto n = s.size(0);
  const auto a = flatten(expand(unsqueeze(s, 1), {n, n}));
  const auto b = flatten(expand(s, {n, n}));
  check_pytorch(name + "/special", f(a, b), tolerance);
}

}  // namespace

TEST_CASE("arithmetic, against PyTorch") {
  binary("add", 1e-7, [](const auto& a, const auto& b) { return a + b; });
  binary("sub", 1e-7, [](const auto& a, const auto& b) { return a - b; });
  binary("mul", 1e-7, [](const auto& a, const auto& b) { return a * b; });
  binary("div", 2e-7, [](const auto& a, const auto& b) { return a / b; });
  // Of +0 and -0 PyTorch takes either: the sign is left out.
  binary("maximum", 1e-30, [](const auto& a, const auto& b) { return maximum(a, b); });
  binary("minimum", 1e-30, [](const auto& a, const auto& b) { return minimum(a, b); });
  binary(
      "remainder", 1e-6, [](const auto& a, const auto& b) { return remainder(a, b); }, same, false);
  binary(
      "pow", 2e-6, [](const auto& a, const auto& b) { return pow(a, b); }, positive);
}

TEST_CASE("atan2, addcmul and addcdiv, against PyTorch") {
  binary("atan2", 3e-7, [](const auto& a, const auto& b) { return atan2(a, b); });
  const auto x = numbers<float>({3, 1}), b = numbers<float>({3, 5}, 2);
  const auto a = numbers<float>({5}, 1);
  check_pytorch(
      "addcmul", 2e-7,
      [](const auto& p, const auto& q, const auto& r) { return addcmul(p, q, r, 0.5); }, x, a, b);
  check_pytorch(
      "addcdiv", 2e-7,
      [](const auto& p, const auto& q, const auto& r) { return addcdiv(p, q, r, -2); }, x, a, b);
}

TEST_CASE("comparisons, against PyTorch") {
  binary("eq", 0, [](const auto& a, const auto& b) { return a == b; });
  binary("ne", 0, [](const auto& a, const auto& b) { return a != b; });
  binary("lt", 0, [](const auto& a, const auto& b) { return a < b; });
  binary("le", 0, [](const auto& a, const auto& b) { return a <= b; });
  binary("gt", 0, [](const auto& a, const auto& b) { return a > b; });
  binary("ge", 0, [](const auto& a, const auto& b) { return a >= b; });
}

TEST_CASE("where, lerp and integers, against PyTorch") {
  const xla::eager_mode_guard eager;
  const auto c = numbers<bool>({3, 5}, 3);
  check_pytorch(
      "where/broadcast", 0, [&](const auto& x, const auto& y) { return where(c, x, y); },
      numbers<float>({3, 1}), numbers<float>({5}, 1));
  check_pytorch(
      "lerp", 2e-7, [](const auto& x, const auto& y) { return lerp(x, y, 0.3); },
      numbers<float>({3, 5}), numbers<float>({3, 5}, 1));
  const auto a = numbers<std::int64_t>({37}), b = numbers<std::int64_t>({37}, 1);
  const auto divisor = where(b == 0, 3, b);
  check_pytorch("remainder/integers", remainder(a, divisor), 0);
  check_pytorch("div/integers", div(a, divisor, xla::Rounding::trunc), 0);
}
