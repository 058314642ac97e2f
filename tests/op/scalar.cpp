// SPDX-License-Identifier: Apache-2.0
// A number that a tensor holds: in every element type the tensor's number.
#include "xla/op/scalar.hpp"

#include <cstdint>
#include <tuple>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/reduce.hpp"

using xla::Scalar;

TEMPLATE_TEST_CASE("a number that a tensor holds, as each element type", "", float, double) {
  using T = TestType;
  const auto as_each = [](const auto& rate) {
    const auto s = Scalar::held_by(rate);
    return std::tuple(s.template as<float>(), s.template as<double>(),
                      s.template as<xla::bfloat16>(), s.template as<std::int64_t>(),
                      s.template as<std::int32_t>(), s.template as<std::uint8_t>(),
                      s.template as<bool>());
  };
  for (T number : {T(0), T(1), T(2.75), T(201.1)}) {
    const xla::Tensor<T, 0> rate(number);
    test::check_modes(as_each, rate);
    const auto [f, d, b, l, i, u, t] = as_each(rate);
    CHECK(f.item() == static_cast<float>(number));
    CHECK(d.item() == static_cast<double>(number));
    CHECK(b.item() == xla::bfloat16(static_cast<float>(number)));
    CHECK(l.item() == static_cast<std::int64_t>(number));
    CHECK(i.item() == static_cast<std::int32_t>(number));
    CHECK(u.item() == static_cast<std::uint8_t>(number));
    CHECK(t.item() == (number != T(0)));
    CHECK_FALSE(Scalar::held_by(rate).known());
  }
}

TEST_CASE("with a tensor of another element type it is the tensor's number, too") {
  const auto product = [](auto& x, auto& rate) {
    const auto held = Scalar::held_by(rate);
    const auto y = x * held;
    sum(y).backward();
    return std::tuple(y, x.grad());
  };
  const auto x = test::parameter(test::numbers<float>({5}));
  test::check_modes(product, x, xla::Tensor<double, 0>(0.375));
  auto own = x;
  auto rate = xla::Tensor<double, 0>(0.375);
  const auto [y, gradient] = product(own, rate);
  for (std::int64_t i = 0; i < 5; ++i) {
    CHECK(y.data()[i] == x.data()[i] * 0.375f);
    CHECK(gradient.data()[i] == 0.375f);
  }
}

TEST_CASE("a copy of it has the same number, and a plain number stays what it is") {
  const xla::Tensor<double, 0> rate(0.5);
  Scalar s = 3.0;
  CHECK(s.as<float>().item() == 3.0f);
  s = Scalar::held_by(rate);
  const Scalar copy = s;
  CHECK(copy.as<float>().item() == 0.5f);
  s = 2;
  CHECK(s.known());
  CHECK(s.as<double>().item() == 2.0);
}
