// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <xla/ext/stablehlo.hpp>
#include <xla/xla.hpp>

#include "catch.hpp"
#include "support/mlp.hpp"
#include "support/stablehlo.hpp"

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

}  // namespace

XLA_ELEMENTWISE_OP(swish);
XLA_STABLEHLO_OP(swish);
XLA_ELEMENTWISE_OP(untold);

TEST_CASE("every op of the library has a form, or a sentence that refuses it") {
  int forms = 0, of_program = 0;
  for (const auto& row : xla::detail::op_table<xla::detail::hlo::form_of>.rows) {
    INFO(row.name);
    const bool writes = row.value.write != nullptr, refuses = !row.value.refused.empty();
    CHECK_FALSE((writes && refuses));
    forms += writes;
    of_program += !writes && !refuses;
  }
  CHECK(of_program == 6);
  CHECK(forms > 50);
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
  auto truth = f > 0;
  const auto all = text_of(
      [](auto& b, auto& small, auto& bytes, auto& truth) {
        return std::tuple(xla::cast<float>(b), xla::cast<std::int64_t>(small), bytes + bytes,
                          !truth);
      },
      b, small, bytes, truth);
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
  const auto whole = [](auto& a) {
    auto d = a * 1;
    d.index(xla::Slice(), xla::Slice(xla::none, xla::none, 2)) =
        a.index(xla::Slice(), xla::Slice(xla::none, xla::none, -2));
    return std::tuple(xla::cat({a, a, a, d}, 0), transpose(a), sum(a), max(a, {0}),
                      a.index(xla::Slice(0, 0)), flip(a, {1}), pad(a, {{1, 0}, {0, 1}}, 0.5),
                      xla::arange(a.size(0)), tril(a), xla::expand(a, {2, -1, -1}));
  };
  const auto rows = [](auto& a) {
    auto d = a * 1;
    d.index(xla::Slice(xla::none, xla::none, -3)) =
        a.index(xla::Slice(xla::none, xla::none, 3)) * 2;
    d.index(0) += 1;
    return std::tuple(d, a.index(xla::Slice(xla::none, 0, -2)), a.index(-1), xla::roll(a, 1, 0));
  };
  for (const std::int64_t n : {0, 1, 2, 7}) {
    auto a = numbers<float>({n, 3});
    text_of(whole, a);
    if (n > 0) text_of(rows, a);
  }
}

TEST_CASE("products name their axes, and nothing is turned for them") {
  auto a = numbers<float>({4, 3, 5});
  auto b = numbers<float>({5, 2});
  const auto text = text_of(
      [](auto& a, auto& b) {
        return std::tuple(matmul(a, b), matmul(a, xla::reshape(b, {1, 5, 2})),
                          matmul(transpose(a, 1, 2), transpose(a, 0, 0)),
                          xla::einsum<"bij,jk->kbi">(a, b));  // the first, turned
      },
      a, b);
  CHECK(reader::count(text, "stablehlo.dot_general") == 3);
}

TEST_CASE("an op of the program's own is its kernel, where the program says so") {
  auto x = numbers<float>({3});
  const auto text = text_of([](auto& x) { return xla::elementwise<swish>(x); }, x);
  CHECK(reader::count(text, "stablehlo.exponential") == 1);
  CHECK_THROWS_WITH(
      xla::stablehlo([](auto& x) { return xla::elementwise<untold>(x); }, x),
      test::contains("xla::stablehlo: test_untold: ") && test::contains("XLA_STABLEHLO_OP"));
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
