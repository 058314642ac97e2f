// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/print.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/tanh.hpp"

using test::numbers;
using xla::bfloat16;
using xla::cast;

namespace {

template <class T, int R>
xla::Tensor<bfloat16, R> half(const xla::Tensor<T, R>& x) {
  return cast<bfloat16>(x);
}
template <int R>
void check_half(const xla::Tensor<bfloat16, R>& got, const xla::Tensor<float, R>& want) {
  test::check_equal(cast<float>(got), cast<float>(half(want)));
}

}  // namespace

TEST_CASE("bfloat16 is the upper half of a float, rounded to the nearest even") {
  const auto round = [](float x) { return static_cast<float>(bfloat16(x)); };
  for (float x : {0.f, -0.f, 1.f, -2.5f, 3.140625f, 1e30f, 1e-38f, 1e-40f})
    CHECK(std::abs(round(x) - x) <= std::abs(x) / 256 + 1e-40f);
  CHECK(round(1 + 1.f / 256) == 1);                 // half way, down to even
  CHECK(round(1 + 3.f / 256) == 1 + 4.f / 256);     // half way, up to even
  CHECK(round(1 + 1.001f / 256) == 1 + 2.f / 256);  // beyond
  CHECK(bfloat16(1).bits() == 0x3f80);
  CHECK(round(std::numeric_limits<float>::max()) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(round(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::signbit(round(-0.f)));
  static_assert(sizeof(bfloat16) == 2 && static_cast<float>(bfloat16(0.5)) == 0.5f);
}

TEST_CASE("functions on bfloat16 compute in float and round once") {
  const xla::eager_mode_guard eager;
  const auto x = half(numbers<float>({7, 13}));
  const auto y = half(numbers<float>({13}, 1));
  const auto fx = cast<float>(x);
  const auto fy = cast<float>(y);
  check_half(x + y, fx + fy);
  check_half(x * 0.1, fx * 0.1f);
  check_half(1 / y, 1 / fy);
  check_half(tanh(x), tanh(fx));
  check_half(sum(x, {1}), sum(fx, {1}));
  check_half(max(x, {0}), max(fx, {0}));
  check_half(matmul(x, transpose(x)), matmul(fx, transpose(fx)));
  check_half(where(x > 0, x, y), where(fx > 0, fx, fy));
  CHECK((x < y).to_vector() == (fx < fy).to_vector());
  CHECK(argmax(x, 1).to_vector() == argmax(fx, 1).to_vector());
  // 257 is no bfloat16: a size beside a tensor is not rounded.
  const auto ones = xla::ones<bfloat16>({257});
  check_half(mean(ones * 2), xla::tensor<float>(2.f));
}

TEST_CASE("bfloat16 moves, is read and printed") {
  const xla::eager_mode_guard eager;
  auto x = half(numbers<float>({4, 5}));
  const auto fx = cast<float>(x);
  check_half(transpose(x), transpose(fx));
  check_half(slice(x, 1, 1, 4), slice(fx, 1, 1, 4));
  check_half(reshape(x, {2, -1}), reshape(fx, {2, -1}));
  check_half(xla::gather(x, 0, xla::tensor<std::int64_t>({{3, 2, 1, 0, 3}})),
             xla::gather(fx, 0, xla::tensor<std::int64_t>({{3, 2, 1, 0, 3}})));
  x[0] = x[1] * 2;
  check_half(x[0], fx[1] * 2);
  CHECK(cast<std::int64_t>(xla::full<bfloat16>({2}, -3.5)).to_vector() ==
        std::vector<std::int64_t>{-3, -3});
  CHECK(cast<bool>(xla::zeros<bfloat16>({2})).to_vector() == std::vector<bool>{false, false});
  const auto from = xla::from_blob(x.data(), {4, 5});
  check_half(from, cast<float>(x));
  std::ostringstream out;
  out << xla::full<bfloat16>({2}, 1.5);
  CHECK(out.str() == "tensor([1.5, 1.5], device='xla:0')");
  CHECK(xla::name_of(xla::dtype_of<bfloat16>) == "bfloat16");
}

TEST_CASE("bfloat16 is the same in every mode, and gradients flow through it") {
  auto f = [](auto& w, auto& x) {
    const auto h = tanh(matmul(x, cast<bfloat16>(w))) * 0.5 + x;
    auto loss = mean(cast<float>(softmax(h) * h));
    loss.backward();
    return std::tuple(loss, cast<float>(h));
  };
  test::check_modes(f, test::parameter(numbers<float>({5, 5})), half(numbers<float>({7, 5}, 1)));
  test::check_modes(
      [](auto& p, auto& x) {
        sum(cast<float>(p * x + p)).backward();
        return cast<float>(p.grad());
      },
      test::parameter(half(numbers<float>({5}))), half(numbers<float>({5}, 1)));
}
