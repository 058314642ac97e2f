// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "support/mlp.hpp"
#include "support/on_plugin.hpp"
#include "support/stablehlo.hpp"
#include "xla/ext/stablehlo.hpp"
#include "xla/functions.hpp"
#include "xla/loop.hpp"

using test::numbers;
using reader = test::stablehlo_reader;

namespace {

struct swish : xla::op::map {
  static constexpr auto name = "test_swish";
  static constexpr auto kernel(auto x) { return x / (x.like(1) + (-x).exp()); }
};
struct untold : xla::op::map {
  static constexpr auto name = "test_untold";
  static constexpr auto kernel(auto x) { return x + x; }
};

/// The lines of a function's text, which is in order.
template <class F, class... A>
std::string text_of(F&& f, A&&... a) {
  const std::string text = xla::stablehlo(f, a...);
  CHECK(reader::problem(text) == "");
  return text;
}

constexpr auto moved_whole = [](auto& a) {
  auto d = a * 1;
  d.index(xla::Slice(), xla::Slice(xla::none, xla::none, 2)) =
      a.index(xla::Slice(), xla::Slice(xla::none, xla::none, -2));
  return std::tuple(xla::cat({a, a, a, d}, 0), transpose(a), sum(a), max(a, {0}),
                    a.index(xla::Slice(0, 0)), flip(a, {1}), pad(a, {{1, 0}, {0, 1}}, 0.5),
                    xla::arange(a.size(0)), tril(a), xla::expand(a, {2, -1, -1}));
};
constexpr auto moved_rows = [](auto& a) {
  auto d = a * 1;
  d.index(xla::Slice(xla::none, xla::none, -3)) = a.index(xla::Slice(xla::none, xla::none, 3)) * 2;
  d.index(0) += 1;
  return std::tuple(d, a.index(xla::Slice(xla::none, 0, -2)), a.index(-1), xla::roll(a, 1, 0));
};

constexpr auto products = [](auto& a, auto& b) {
  return std::tuple(matmul(a, b), matmul(a, xla::reshape(b, {1, 5, 2})),
                    matmul(transpose(a, 1, 2), transpose(a, 0, 0)),
                    xla::einsum<"bij,jk->kbi">(a, b));  // the first, turned
};
constexpr auto products_of_halves = [](auto& a, auto& b) {
  const auto x = xla::cast<xla::bfloat16>(a);
  const auto y = xla::cast<xla::bfloat16>(b);
  return std::tuple(xla::cast<float>(matmul(x, y)), xla::cast<float>(matmul(transpose(x, 1, 2), x)),
                    xla::cast<float>(xla::einsum<"bij,jk->kbi">(x, y)));
};
/// With gradients of all.
constexpr auto convolved = [](const auto& images, const auto& kernel) {
  auto x = images * 1, weight = kernel * 1;
  x.requires_grad_();
  weight.requires_grad_();
  const auto y = conv2d(x, weight, {.stride = 2, .padding = 1});
  const auto z = conv_transpose2d(y, weight, {.stride = 2});
  const auto loss = sum(z * z * 0.25);
  return std::tuple_cat(std::tuple(y, z), xla::grad(loss, std::tie(x, weight)));
};

}  // namespace

XLA_ELEMENTWISE_OP(swish);
XLA_STABLEHLO_OP(swish);
XLA_ELEMENTWISE_OP(untold);

TEST_CASE("every op of the library has a lowering, or a sentence that refuses it") {
  int lowerings = 0, of_program = 0;
  std::string refused;
  for (const auto& row : xla::detail::op_table<xla::detail::hlo::lowering_of>.rows) {
    INFO(row.name);
    const bool writes = row.value.write != nullptr, refuses = !row.value.refused.empty();
    CHECK_FALSE((writes && refuses));
    lowerings += writes;
    of_program += !writes && !refuses;
    if (refuses) refused += std::string(row.name) + ": " + std::string(row.value.refused) + '\n';
  }
  CHECK(refused == "");  // users read what is listed here
  CHECK(of_program == 5);
  CHECK(lowerings == static_cast<int>(xla::detail::all_ops::size) - of_program);
}

TEST_CASE("the text of a small function") {
  auto x = numbers<float>({2, 3});
  CHECK(xla::stablehlo([](auto& x, xla::Scalar s) { return sum(xla::relu(x) * s, {1}); }, x,
                       xla::Scalar(0.5)) == R"(module @xla {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<f32>) -> (tensor<2xf32>) {
    %v1 = "stablehlo.constant"() {value = dense<0x00000000> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
    %v1.1 = "stablehlo.maximum"(%arg0, %v1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %v3 = "stablehlo.broadcast_in_dim"(%arg1) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2x3xf32>
    %v3.1 = "stablehlo.multiply"(%v1.1, %v3) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %v4 = "stablehlo.constant"() {value = dense<0x00000000> : tensor<f32>} : () -> tensor<f32>
    %v4.4 = "stablehlo.reduce"(%v3.1, %v4) ({
      ^bb0(%v4.1: tensor<f32>, %v4.2: tensor<f32>):
        %v4.3 = "stablehlo.add"(%v4.1, %v4.2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%v4.3) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %v4.5 = "stablehlo.reshape"(%v4.4) : (tensor<2xf32>) -> tensor<2x1xf32>
    %v5 = "stablehlo.reshape"(%v4.5) : (tensor<2x1xf32>) -> tensor<2xf32>
    func.return %v5 : tensor<2xf32>
  }
}
)");
}

TEST_CASE("numbers keep their bits, and every element type has its name") {
  const auto constant = [](const std::string& text) {
    const auto at = text.find("dense<") + 6;
    return text.substr(at, text.find('>', at) - at);
  };
  auto f = numbers<float>({2});
  auto d = numbers<double>({2});
  auto i = numbers<std::int64_t>({2});
  CHECK(constant(text_of([](auto& x) { return x + 0.1; }, f)) == "0x3DCCCCCD");
  CHECK(constant(text_of([](auto& x) { return x + 0.1; }, d)) == "0x3FB999999999999A");
  CHECK(constant(text_of([](auto& x) { return x + std::numeric_limits<float>::infinity(); }, f)) ==
        "0x7F800000");
  CHECK(constant(text_of([](auto& x) { return x - 9007199254740993; }, i)) == "9007199254740993");
  CHECK(constant(text_of([](auto& x) { return max(x, {0}); }, i)) == "-9223372036854775808");
  auto b = xla::cast<xla::bfloat16>(f);
  auto small = xla::cast<std::int32_t>(i);
  auto bytes = xla::cast<std::uint8_t>(i);
  auto boolean = f > 0;
  const auto all = text_of(
      [](auto& b, auto& small, auto& bytes, auto& boolean) {
        return std::tuple(xla::cast<float>(b), xla::cast<std::int64_t>(small), bytes + bytes,
                          !boolean);
      },
      b, small, bytes, boolean);
  CHECK_THAT(all, test::contains("tensor<2xbf16>") && test::contains("tensor<2xi32>") &&
                      test::contains("tensor<2xui8>") && test::contains("tensor<2xi1>"));
}

TEST_CASE("state is written over what it was, gradients too") {
  auto x = numbers<float>({4, 3});
  auto w = test::parameter(numbers<float>({3}));
  auto y = numbers<float>({4, 3});
  const auto step = [](auto& w, auto& x, auto& y) {
    auto loss = sum(w * x);
    loss.backward();
    y = y * 2;
    return loss;
  };
  sum(w).backward();  // a gradient is there, which the step adds to
  const auto text = text_of(step, w, x, y);
  CHECK_THAT(text, test::contains("%arg1: tensor<3xf32> {tf.aliasing_output = 1 : i32}") &&
                       test::contains("%arg2: tensor<4x3xf32>, %arg3: tensor<4x3xf32> "
                                      "{tf.aliasing_output = 0 : i32}") &&
                       test::contains("-> (tensor<4x3xf32>, tensor<3xf32>, tensor<f32>)"));
  auto compiled = xla::compile(step);
  CHECK(xla::stablehlo(compiled, w, x, y) == text);
  w.requires_grad_(false);
  auto frozen = [](auto& w, auto& x) { return sum(w * x, {0}); };
  CHECK(reader::count(text_of(frozen, w, x), "stablehlo.reduce") == 1);
}

TEST_CASE("elements that are moved, at awkward sizes") {
  for (const std::int64_t n : {0, 1, 2, 7}) {
    auto a = numbers<float>({n, 3});
    text_of(moved_whole, a);
    if (n > 0) text_of(moved_rows, a);
  }
}

TEST_CASE("products name their axes, and nothing is turned for them") {
  auto a = numbers<float>({4, 3, 5});
  auto b = numbers<float>({5, 2});
  const auto text = text_of(products, a, b);
  CHECK(reader::count(text, "stablehlo.dot_general") == 3);
}

TEST_CASE("in autocast operands are bfloat16, and results float32") {
  auto a = numbers<float>({4, 3, 5});
  auto b = numbers<float>({5, 2});
  const auto text = text_of(xla::autocast(products), a, b);
  CHECK_THAT(text, test::contains("tensor<4x3x5xbf16>, tensor<4x3x5xbf16>) -> tensor<4x5x5xf32>"));
  auto images = numbers<float>({2, 33, 6, 5}, 1), weight = numbers<float>({32, 33, 3, 3}, 2);
  CHECK_THAT(
      text_of(xla::autocast(convolved), images, weight),
      test::contains("tensor<2x33x6x5xbf16>, tensor<32x33x3x3xbf16>) -> tensor<2x32x3x3xf32>"));
  // Not of channels so few that eager mode does not round them either.
  auto narrow = numbers<float>({31, 33, 3, 3}, 2);
  CHECK(reader::count(text_of(xla::autocast(convolved), images, narrow), "bf16") == 0);
  auto q = numbers<float>({2, 4, 5, 4}, 1), k = numbers<float>({2, 2, 7, 4}, 2);
  const auto attended = text_of(
      xla::autocast([](auto& q, auto& k) { return xla::scaled_dot_product_attention(q, k, k); }), q,
      k);
  for (const char* product : {"tensor<2x4x5x4xbf16>, tensor<2x4x7x4xbf16>) -> tensor<2x4x5x7xf32>",
                              "tensor<2x4x5x7xbf16>, tensor<2x4x7x4xbf16>) -> tensor<2x4x5x4xf32>"})
    CHECK_THAT(attended, test::contains(product));
}

TEST_CASE("products of bfloat16 read it as it is, and their results are rounded once") {
  auto a = numbers<float>({4, 3, 5});
  auto b = numbers<float>({5, 2});
  const auto text = text_of(products_of_halves, a, b);
  CHECK_THAT(text, test::contains("tensor<4x3x5xbf16>, tensor<4x3x5xbf16>) -> tensor<4x5x5xf32>"));
  // Operands are rounded, and results rounded and widened.
  CHECK(reader::count(text, "stablehlo.convert") == 2 + 2 + 3);  // two products are one
}

TEST_CASE("a custom op is lowered by its kernel, if the program says so") {
  auto x = numbers<float>({3});
  const auto text = text_of([](auto& x) { return xla::elementwise<swish>(x); }, x);
  CHECK(reader::count(text, "stablehlo.exponential") == 1);
  CHECK_THROWS_WITH(
      xla::stablehlo([](auto& x) { return xla::elementwise<untold>(x); }, x),
      test::contains("xla::stablehlo: test_untold: ") && test::contains("XLA_STABLEHLO_OP"));
}

TEST_CASE("a loop is a while, and its gradient another; one of no steps is none") {
  const auto sums = [](auto& xs) {
    const auto step = [](const auto& c, const auto& x) { return std::pair(c * x, c + x); };
    const auto [last, all] = xla::scan(step, xla::ones<float>({2}), xs);
    const auto loss = sum(last) + sum(all);
    loss.backward();
    return loss;
  };
  for (const std::int64_t steps : {0, 1, 3}) {
    auto xs = xla::Parameter<float, 2>(numbers<float>({steps, 2}));
    CHECK(reader::count(text_of(sums, xs), "stablehlo.while") == (steps > 0 ? 2 : 0));
  }
}

TEST_CASE("each branch of cond() is an if") {
  const auto f = [](auto& p, auto& x) {
    const auto y = xla::cond(
        sum(p) > 0, [&] { return tanh(x); }, [&] { return x * x; });
    return xla::cond(
        any(p > 1), [&] { return std::tuple(y, sum(x)); },
        [&] { return std::tuple(y * 2.0f, sum(y)); });
  };
  const auto text = text_of(f, numbers<float>({2}), numbers<float>({3}));
  CHECK(reader::count(text, "stablehlo.if") == 4);
  CHECK(reader::count(text, "stablehlo.while") == 0);
  CHECK(reader::count(text, "stablehlo.dynamic_update_slice") == 0);
}

TEST_CASE("modules, and what a call refuses") {
  xla::nn::Linear layer(3, 2);
  auto x = numbers<float>({4, 3});
  const auto text = text_of(layer, x);
  CHECK(reader::count(text, "stablehlo.dot_general") == 1);
  auto compiled = xla::compile(layer);
  CHECK(xla::stablehlo(compiled, x) == text);
  auto wrong = numbers<float>({4, 5});
  CHECK_THROWS_AS(xla::stablehlo(layer, wrong), xla::shape_error);
}

TEST_CASE("printing pending ops of traced mode leaves them pending") {
  const xla::eager_mode_guard mode(false);
  auto x = numbers<float>({3});
  xla::sync(true);
  CHECK(xla::stablehlo() == "");
  auto y = exp(x);
  auto z = y + y;
  y = x;
  const std::string text = xla::stablehlo();
  CHECK(reader::problem(text) == "");
  CHECK_THAT(text, test::contains(": tensor<3xf32>) -> (tensor<3xf32>)") &&
                       test::contains("stablehlo.exponential"));
  CHECK(xla::stablehlo() == text);
  const xla::eager_mode_guard eager;
  CHECK(z.to_vector() == (exp(x) + exp(x)).to_vector());
}

TEST_CASE("the reader of texts finds what is wrong") {
  auto x = numbers<float>({2});
  const std::string right = xla::stablehlo([](auto& x) { return sum(x) + 1; }, x);
  CHECK(reader::problem(right) == "");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = right;
    text.replace(text.find(from), from.size(), to);
    return reader::problem(text);
  };
  CHECK_THAT(with("(%arg0, ", "(%arg9, "), test::contains("%arg9 is not made before"));
  CHECK_THAT(with("%arg0: tensor<2xf32>", "%arg0: tensor<3xf32>"),
             test::contains("%arg0 is of type tensor<3xf32>"));
  CHECK_THAT(with("func.return", "func.end"), test::contains("does not end"));
}

namespace {

/// What XLA computes of f's text against eager mode, to this many units of rounding.
template <class F, class... A>
void compare(double units, F f, const A&... a) {
  const xla::eager_mode_guard eager;
  std::vector<std::vector<test::host_array>> arguments(1);
  std::vector<test::host_array> want;
  (test::add_arrays(arguments[0], a), ...);
  std::tuple<A...> copies(a...);
  std::apply([&](auto&... c) { test::add_arrays(want, f(c...)); }, copies);
  const auto got = test::run_text(text_of(f, a...), arguments, want);
  for (std::size_t i = 0; i < want.size(); ++i) {
    INFO("result " << i);
    CHECK(test::far_apart(got[0][i], want[i], units) == "");
  }
  test::note_ops_of(f, a...);
}

template <class T>
void compare_numbers(const xla::Tensor<T, 1>& x, const xla::Tensor<T, 1>& y) {
  compare(
      0,
      [](auto& a, auto& b) { return std::tuple(a + b, a - b, a * b, a / b, -a, abs(a), sign(a)); },
      x, y);
  compare(
      1,
      [](auto& a, auto& b) {
        return std::tuple(xla::remainder(a, b), xla::fmod(a, b), maximum(a, b), minimum(a, b),
                          xla::clamp(a, b, a * b), xla::relu(a), pow(a, b), floor_divide(a, b),
                          div(a, b, xla::Rounding::trunc));
      },
      x, y);
  compare(
      0,
      [](auto& a, auto& b) {
        return std::tuple(a == b, a != b, a<b, a <= b, a> b, a >= b, where(a < b, a, b));
      },
      x, y);
  compare(
      0, [](auto& a, auto& b) { return std::tuple(sum(a), max(a), min(a), prod(b), max(b, {0})); },
      x, y);
}
template <class T>
void compare_fractions(const xla::Tensor<T, 1>& x, const xla::Tensor<T, 1>& y) {
  compare_numbers(x, y);
  compare(
      16,
      [](auto& a) {
        const auto s = xla::clamp(a, -0.9, 0.9), p = abs(s) + 0.5;
        return std::tuple(xla::asin(s), xla::acos(s), xla::atan(a), xla::asinh(s),
                          xla::acosh(p + 1), xla::atanh(s), erfinv(s), xla::sinh(s),
                          xla::cosh(s), xla::log2(p), xla::log10(p), xla::logit(p * 0.5),
                          sinc(s));
      },
      x);
  compare(
      16,
      [](auto& a, auto& b) {
        return std::tuple(xla::logaddexp(a, b), xla::hypot(a, b), xla::xlogy(a, abs(b)),
                          xla::xlog1py(a, abs(b)));
      },
      x, y);
  compare(
      64,
      [](auto& a) {
        const auto p = xla::clamp(abs(a), 0, 8) + 0.5;
        return std::tuple(lgamma(p + 2), xla::digamma(p + 2), xla::polygamma(2, p));
      },
      x);
  compare(
      1, [](auto& a) { return std::tuple(sqrt(a), floor(a), ceil(a), xla::round(a), trunc(a)); },
      x);
  compare(
      4,
      [](auto& a, auto& b) {
        const auto s = xla::clamp(a, -8, 8);
        return std::tuple(rsqrt(a), exp(s), log(a), xla::expm1(s), xla::log1p(a), tanh(a),
                          xla::atan2(a, b), xla::erf(a), xla::erfc(a), xla::ndtr(a),
                          xla::sigmoid(a), xla::softplus(s), xla::hardtanh(a), sin(s), cos(s));
      },
      x, y);
}

/// With gradients; those of elementwise ops are in stablehlo_maps.cpp.
constexpr auto reductions = [](auto& x, auto& y) {
  auto a = x * 1, b = y * 1;
  a.requires_grad_();
  b.requires_grad_();
  const auto all = std::tuple(sum(a), prod(a), max(a), min(a), max(b, {0}));
  const auto loss = std::apply([](const auto&... y) { return (... + (y * y)); }, all);
  return std::tuple_cat(all, xla::grad(loss, std::tie(a, b)));
};

}  // namespace

TEST_CASE("XLA computes elementwise ops and reductions as eager mode does", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  constexpr float inf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  auto x = xla::tensor<float>({0.f,   -0.f, 1.f,  -1.f, .5f,   -.5f,   1.5f, -2.5f, 2.5f,  3.7f,
                               -3.7f, inf,  -inf, nan,  1e20f, -1e20f, 3e9f, 80.f,  -80.f, .1f});
  auto y = xla::tensor<float>({1.f, 2.f, nan, -1.f, 3.f,  -.3f, 1.5f, 2.5f, -1.2f, 3.7f,
                               .7f, inf, 1.f, 2.f,  -inf, 4.f,  nan,  0.f,  -0.f,  -2.f});
  compare_fractions(x, y);
  compare_fractions(xla::cast<double>(x), xla::cast<double>(y));
  constexpr auto low = std::numeric_limits<std::int64_t>::min(), high = -(low + 1);
  auto i = xla::tensor<std::int64_t>({0, 1, -1, 7, -7, 5, -5, low, high, 3, 2, -2, -1, -1, 10, 0});
  auto j = xla::tensor<std::int64_t>({0, 0, -1, 2, 2, -2, -2, -1, -1, -3, 62, 63, -3, -2, 3, -4});
  compare_numbers(i, j);
  compare(
      0, [](auto& a, auto& b) { return std::tuple(a & b, a | b, a ^ b, ~a, (a > b) ^ (a < b)); }, i,
      j);
  const auto a = xla::tensor<float>({.5f, .6f, .8f, 1.1f, 1.45f}),
             b = xla::tensor<float>({.7f, .55f, 1.3f, .9f, 1.2f});
  compare(32, reductions, a, b);
  compare(32, reductions, xla::cast<double>(a), xla::cast<double>(b));
  const auto cast = [](auto& a) {
    return std::tuple(xla::cast<std::int32_t>(a), xla::cast<std::uint8_t>(a), xla::cast<bool>(a),
                      xla::cast<double>(a), xla::cast<xla::bfloat16>(xla::cast<float>(a)));
  };
  compare(0, cast, x);
  compare(0, cast, i);
  compare(
      0,
      [](auto& a) {
        const auto p = a > 1, q = a < 4;
        return std::tuple(p && q, p || q, !p, p == q, where(p, q, !q), xla::cast<float>(p));
      },
      x);
}

TEST_CASE("XLA moves elements as eager mode does, and multiplies", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  for (const std::int64_t n : {0, 1, 2, 7}) {
    const auto a = numbers<float>({n, 3});
    compare(4, moved_whole, a);
    if (n > 0) compare(0, moved_rows, a);
  }
  compare(4, products, numbers<float>({4, 3, 5}), numbers<float>({5, 2}));
  compare(4, products, numbers<double>({0, 3, 5}), numbers<double>({5, 2}));
  compare(4, xla::autocast(products), numbers<float>({4, 3, 5}), numbers<float>({5, 2}));
  compare(4, products_of_halves, numbers<float>({4, 3, 5}), numbers<float>({5, 2}));
  compare(64, xla::autocast(convolved), numbers<float>({2, 33, 6, 5}, 1),
          numbers<float>({32, 33, 3, 3}, 2));
}
