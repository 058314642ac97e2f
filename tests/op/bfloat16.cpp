// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/op/derived/activation.hpp"
#include "xla/op/derived/attention.hpp"
#include "xla/op/derived/einsum.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/op/derived/normalize.hpp"
#include "xla/op/derived/range.hpp"
#include "xla/op/derived/rotary.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/derived/triangle.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/print.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/slice.hpp"
#include "xla/op/tanh.hpp"
#include "xla/run/state/metrics.hpp"

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
/// Sums in float, rounded once: within half a unit of bfloat16 of the exact result.
template <int R>
void check_once_rounded(const xla::Tensor<bfloat16, R>& got, const xla::Tensor<double, R>& want) {
  const auto g = got.to_vector();
  const auto w = want.to_vector();
  REQUIRE(g.size() == w.size());
  int wrong = 0;
  for (std::size_t i = 0; i < g.size(); ++i)
    wrong += !(std::abs(static_cast<double>(static_cast<float>(g[i])) - w[i]) <=
               std::abs(w[i]) / 256 + 1e-4);
  CHECK(wrong == 0);
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
  // 257 is no bfloat16: a size with a tensor is not rounded.
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

TEST_CASE("bfloat16 is created as other element types are") {
  const xla::eager_mode_guard eager;
  // Counted in float: 301 is no bfloat16, but those after it are.
  check_half(xla::arange<bfloat16>(600), xla::arange<float>(600));
  check_half(xla::arange<bfloat16>(-3, 600), xla::arange<float>(-3, 600));
  check_half(xla::arange<bfloat16>(600, -3, -3), xla::arange<float>(600, -3, -3));
  check_half(xla::arange<bfloat16>(0, 1, 0.001), xla::arange<float>(0, 1, 0.001));
  check_half(xla::linspace<bfloat16>(0.3, 7, 300), xla::linspace<float>(0.3f, 7, 300));
  check_half(xla::linspace<bfloat16>(2, 3, 1), xla::full<float>({1}, 2));
  check_half(xla::full<bfloat16>({2, 3}, 0.1), xla::full<float>({2, 3}, 0.1));
  check_half(xla::zeros<bfloat16>({2}), xla::zeros<float>({2}));
  check_half(xla::full_like(xla::ones<bfloat16>({4, 1}), 0.1), xla::full<float>({4, 1}, 0.1));
  check_half(xla::eye<bfloat16>(3), xla::eye<float>(3));
  const auto b = [](double v) { return bfloat16(v); };
  check_half(xla::tensor<bfloat16>(b(1.5)), xla::tensor<float>(1.5f));
  check_half(xla::tensor<bfloat16>({b(1), b(-2)}), xla::tensor<float>({1, -2}));
  check_half(xla::tensor<bfloat16>({{b(1), b(2), b(3)}, {b(4), b(5), b(6)}}),
             xla::tensor<float>({{1, 2, 3}, {4, 5, 6}}));
  check_half(xla::tensor<bfloat16>({{{b(1)}, {b(2)}}, {{b(3)}, {b(0.5)}}}),
             xla::tensor<float>({{{1}, {2}}, {{3}, {0.5}}}));
  check_half(xla::tensor(std::vector{b(7), b(0.25)}), xla::tensor<float>({7, 0.25}));
  const auto sized = [](const auto& x) {
    const xla::Size n = x.size(0);
    return std::tuple(xla::arange<bfloat16>(n), xla::arange<bfloat16>(n, n * 2 + 300),
                      xla::linspace<bfloat16>(0, 0.3, n), zeros_like(x), full_like(x, 0.1));
  };
  test::check_modes(sized, half(numbers<float>({7})));
  check_half(std::get<1>(sized(xla::zeros<bfloat16>({7}))), xla::arange<float>(7, 314));
  check_half(std::get<2>(sized(xla::zeros<bfloat16>({7}))), xla::linspace<float>(0, 0.3f, 7));
}

TEST_CASE("random numbers of bfloat16 are float's, rounded, in every mode") {
  const auto draw = [](auto of_type) {
    using T = decltype(of_type);
    xla::manual_seed(5);
    auto u = xla::rand<T>({9, 40});
    auto n = xla::randn<T>({9, 40});
    return std::tuple(u, n, rand_like(u), randn_like(n));
  };
  const xla::eager_mode_guard eager;
  const auto got = draw(bfloat16());
  const auto want = draw(float());
  check_half(std::get<0>(got), std::get<0>(want));
  check_half(std::get<1>(got), std::get<1>(want));
  check_half(std::get<2>(got), std::get<2>(want));
  check_half(std::get<3>(got), std::get<3>(want));
  test::check_modes(
      [](auto& x) {
        const auto u = rand_like(x), n = randn_like(x);
        return std::tuple(u, n * x);
      },
      half(numbers<float>({7, 13})));
}

TEST_CASE("dropout of bfloat16 draws and scales in float, in every mode, with gradients") {
  const auto x = half(numbers<float>({2, 6, 5, 4}));
  const xla::eager_mode_guard eager;
  const auto same = [&](auto f) {
    xla::manual_seed(5);
    const auto got = f(x);
    xla::manual_seed(5);
    check_half(got, f(cast<float>(x)));
  };
  // 0.3 is no bfloat16, nor is 1 / 0.7.
  same([](const auto& t) { return dropout(t, 0.3); });
  same([](const auto& t) { return dropout2d(t, 0.3); });
  same([](const auto& t) { return dropout(t, 1); });
  check_half(dropout(x, 0.3, false), cast<float>(x));
  test::check_modes(
      [](auto& layer, auto& p) {
        auto y = layer(p);
        sum(cast<float>(y * y)).backward();
        return y;
      },
      xla::nn::Dropout(0.3), test::parameter(x));
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

TEST_CASE("products read bfloat16 where it is, sum in float and round once") {
  const xla::eager_mode_guard eager;
  const auto check = [](const auto& x, const auto& y) {
    check_once_rounded(matmul(x, y), matmul(cast<double>(x), cast<double>(y)));
  };
  check(half(numbers<float>({1, 300})), half(numbers<float>({300, 40}, 1)));
  check(half(numbers<float>({3, 65})), transpose(half(numbers<float>({33, 65}, 1))));
  check(half(numbers<float>({70, 130})), half(numbers<float>({130, 51}, 1)));
  check(half(numbers<float>({9, 31})), half(numbers<float>({31}, 1)));
  check(half(numbers<float>({2, 3, 5, 7})), half(numbers<float>({3, 7, 6}, 1)));
  check(half(numbers<float>({4, 0})), half(numbers<float>({0, 3}, 1)));
  const auto x = half(numbers<float>({2, 9, 31}));
  const auto w = half(numbers<float>({12, 31}, 1));
  const auto bias = half(numbers<float>({12}, 2));
  check_once_rounded(linear(x, w), linear(cast<double>(x), cast<double>(w)));
  check_half(linear(x, w, bias), cast<float>(linear(x, w)) + cast<float>(bias));
  check_once_rounded(xla::einsum<"bij,kj->bki">(x, w),
                     xla::einsum<"bij,kj->bki">(cast<double>(x), cast<double>(w)));

  const auto casts = [] { return xla::counter_value("xla::cast").value_or(0); };
  const auto products = [] { return xla::counter_value("xla::matmul::bfloat16").value_or(0); };
  const auto a = half(numbers<float>({6, 8})), b = half(numbers<float>({8, 7}));
  const auto casts_before = casts(), products_before = products();
  matmul(a, b).to_vector();
  CHECK(casts() == casts_before + 1);  // of the result
  CHECK(products() == products_before + 1);
  const test::on_backend in_double("interpreter:double");
  auto times = xla::compile([](auto& l, auto& r) { return matmul(l, r); });
  check_once_rounded(times(a, b), matmul(cast<double>(a), cast<double>(b)));
}

TEST_CASE("products of bfloat16 are the same in every mode, with gradients") {
  const auto f = [](auto& w, auto& v, auto& x) {
    const auto y = linear(x, w);
    const auto z = matmul(transpose(y, 1, 2), y);
    sum(cast<float>(xla::relu(z)) * 0.25f + sum(cast<float>(matmul(y, v)))).backward();
    return std::tuple(y, z);
  };
  const auto w = half(numbers<float>({40, 33}));
  const auto v = half(numbers<float>({40}, 3));
  const auto x = half(numbers<float>({3, 9, 33}, 1));
  test::check_modes(f, test::parameter(w), test::parameter(v), x);
  // Compared with those of the same products in double.
  const xla::eager_mode_guard eager;
  auto narrow = test::parameter(w);
  auto slim = test::parameter(v);
  auto wide = test::parameter(cast<double>(w));
  auto broad = test::parameter(cast<double>(v));
  const auto loss = [](auto& p, auto& q, const auto& in) {
    const auto y = linear(in, p);
    (sum(cast<double>(y * y)) * 0.5 + sum(cast<double>(matmul(y, q)))).backward();
  };
  loss(narrow, slim, x);
  loss(wide, broad, cast<double>(x));
  const auto close = [](const auto& got, const auto& want) {
    const auto g = cast<double>(got).to_vector(), e = want.to_vector();
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < g.size(); ++i) {
      apart = std::max(apart, std::abs(g[i] - e[i]));
      size = std::max(size, std::abs(e[i]));
    }
    CHECK(size > 0);
    CHECK(apart <= size / 64);
  };
  close(narrow.grad(), wide.grad());
  close(slim.grad(), broad.grad());
}

TEST_CASE("composed functions of bfloat16 round once and handle infinity") {
  const xla::eager_mode_guard eager;
  const auto x = half(numbers<float>({5, 24}) * 3.f);
  const auto w = half(numbers<float>({24}, 1)), b = half(numbers<float>({24}, 2));
  const auto fx = cast<float>(x);
  const auto fw = cast<float>(w), fb = cast<float>(b);
  check_half(layer_norm(x), layer_norm(fx));
  check_half(layer_norm(x, w, b), layer_norm(fx, fw, fb));
  check_half(layer_norm(x, w), layer_norm(fx, fw));
  check_half(rms_norm(x, 1e-6), rms_norm(fx, 1e-6));
  check_half(rms_norm(x, w), rms_norm(fx, fw, 1.0 / 128));
  check_half(gelu(x), gelu(fx));
  check_half(gelu(x, xla::approximate_tanh), gelu(fx, xla::approximate_tanh));
  check_half(silu(x), silu(fx));
  // Positions that bfloat16 has not.
  const auto at = xla::arange<float>(5) + 1001.f;
  check_half(rotary_embedding(x, at), rotary_embedding(fx, at));
  const auto far = half(numbers<float>({300, 8}));
  check_half(rotary_embedding(far), rotary_embedding(cast<float>(far)));

  using limits = std::numeric_limits<bfloat16>;
  CHECK(static_cast<float>(limits::infinity()) == std::numeric_limits<float>::infinity());
  CHECK(limits::max().bits() == 0x7f7f);
  CHECK(limits::lowest().bits() == 0xff7f);
  CHECK(static_cast<float>(limits::epsilon()) == 1 / 128.f);
  CHECK(limits::min().bits() == 0x80);
  CHECK(limits::denorm_min().bits() == 1);
  CHECK(std::isnan(static_cast<float>(limits::quiet_NaN())));
  const auto odd = half(xla::tensor<float>({0.f, INFINITY, -INFINITY, NAN, 2.f}));
  CHECK(xla::isinf(odd).to_vector() == std::vector<bool>{false, true, true, false, false});
  CHECK(xla::isfinite(odd).to_vector() == std::vector<bool>{true, false, false, false, true});
}

TEST_CASE("attention of bfloat16 weighs in float, with every mask, in every mode") {
  const auto q = half(numbers<float>({2, 4, 6, 8})), k = half(numbers<float>({2, 2, 6, 8}, 1));
  const auto v = half(numbers<float>({2, 2, 6, 5}, 2));
  const xla::eager_mode_guard eager;
  const auto mask = half(xla::tril(xla::ones<float>({6, 6})));
  const auto f = [](auto& a, auto& b, auto& c, auto& shown) {
    return std::tuple(scaled_dot_product_attention(a, b, c),
                      scaled_dot_product_attention(a, b, c, {.causal = true}),
                      scaled_dot_product_attention(a, b, c, shown),
                      scaled_dot_product_attention(a, b, c, shown > 0),
                      scaled_dot_product_attention(a, b, c, xla::arange(6)),
                      attention_weights(a, b, shown));
  };
  test::check_modes(f, q, k, v, mask);
  const auto got = f(q, k, v, mask);
  const auto fq = cast<float>(q), fk = cast<float>(k), fv = cast<float>(v);
  const auto shown = cast<float>(mask);
  const auto near = [](const auto& a, const auto& b) {
    test::check_equal(cast<float>(a), b.sizes(), b.to_vector(), 0.02);
  };
  near(std::get<0>(got), scaled_dot_product_attention(fq, fk, fv));
  const auto causal = scaled_dot_product_attention(fq, fk, fv, {.causal = true});
  near(std::get<1>(got), causal);
  near(std::get<2>(got), scaled_dot_product_attention(fq, fk, fv, shown));
  near(std::get<3>(got), causal);
  near(std::get<4>(got), causal);
  near(std::get<5>(got), attention_weights(fq, fk, shown));
}

TEST_CASE("compiled, maps and rows of bfloat16 are one step, which holds floats") {
  const auto f = [](auto& x, auto& w, auto& row, auto& column) {
    const auto y = tanh(layer_norm(x, w) * 2 + x);
    const auto z = where(y > 0.25, y, transpose(transpose(x) + row)) * expand_as(column, y);
    return std::tuple(y, z, cast<float>(max(z, {1}, xla::keepdim)), softmax(z), z > 0);
  };
  const auto check = [&](xla::Size rows, xla::Size columns) {
    test::check_modes(f, half(numbers<float>({rows, columns})), half(numbers<float>({columns}, 1)),
                      half(numbers<float>({rows}, 2)), half(numbers<float>({rows, 1}, 3)));
  };
  check(5, 37);
  check(70, 16);
  check(3, 1);
  check(300, 129);
  check(0, 4);

  const xla::eager_mode_guard eager;
  auto chain = xla::compile([](auto& x, auto& w) { return tanh(layer_norm(x, w) * 2 + x) * x; });
  const auto x = half(numbers<float>({5, 37}));
  const auto w = half(numbers<float>({37}, 1));
  const std::string plan = chain.graph(xla::Stage::planned, x, w);
  CAPTURE(plan);
  // One row region; before it the weight, which has another shape, is widened once.
  CHECK_THAT(plan, test::contains("step 0: map cast of %1") && test::contains("step 1: row cast") &&
                       !test::contains("step 2"));
}
