// SPDX-License-Identifier: Apache-2.0
// Mixed precision: the same bits in every mode, and what it is by hand, with operands rounded
// first.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "support/bfloat16_algorithms.hpp"
#include "support/gradient.hpp"
#include "support/mlp.hpp"
#include "support/modes.hpp"
#include "support/pytorch.hpp"
#include "xla/run/profile.hpp"
#include "xla/xla.hpp"

using test::contains;
using test::numbers;
using xla::autocast;
using xla::Tensor;
namespace nn = xla::nn;

namespace {

/// As a product in autocast sees it. Of numbers that bfloat16 lacks.
template <int R>
Tensor<float, R> rounded(const Tensor<float, R>& x) {
  return xla::cast<float>(xla::cast<xla::bfloat16>(x));
}
template <int R>
bool same_bits(const Tensor<float, R>& a, const Tensor<float, R>& b) {
  test::snapshot s, t;
  s.add(a);
  t.add(b);
  return s.difference(t).empty();
}
/// The largest difference, in parts of the largest element.
template <int R>
double apart(const Tensor<float, R>& a, const Tensor<float, R>& b) {
  return (xla::max(xla::abs(a - b)) / xla::max(xla::abs(b))).item();
}
constexpr double sums = 1e-5;         // float32's, in two orders
constexpr double rounding = 0x1p-13;  // least that rounding operands changes in these tests

/// f, linear in each of a and b, in autocast: against operands rounded by hand, forward and
/// backward, where d is the gradient of its result; and the modes against each other. backward()
/// is called outside.
template <class F, int A, int B, int R>
void check_product(F f, const Tensor<float, A>& a, const Tensor<float, B>& b,
                   const Tensor<float, R>& d) {
  const xla::eager_mode_guard eager;
  const auto got = autocast(f)(a, b);
  CHECK(got.sizes() == d.sizes());
  CHECK(apart(got, f(rounded(a), rounded(b))) < sums);
  CHECK(apart(got, f(a, b)) > rounding);

  auto x = test::parameter(a);
  auto y = test::parameter(b);
  sum(autocast(a, [&] { return f(x, y); }) * d).backward();
  auto want_x = test::parameter(rounded(a));
  auto want_y = test::parameter(rounded(b));
  sum(f(want_x, want_y) * rounded(d)).backward();
  CHECK(apart(x.grad(), want_x.grad()) < sums);
  CHECK(apart(y.grad(), want_y.grad()) < sums);
  CHECK(apart(x.grad(), [&] {
          auto p = test::parameter(a);
          sum(f(p, b) * d).backward();
          return p.grad();
        }()) > rounding);

  test::check_modes(
      [](auto& x, auto& y, auto& d) {
        const auto z = autocast(x, [&] { return F{}(x, y); });
        sum(z * d).backward();
        return z;
      },
      test::parameter(a), test::parameter(b), d);
}

constexpr auto times = [](const auto& a, const auto& b) { return matmul(a, b); };

}  // namespace

TEST_CASE("matrix products round their operands, and so do their gradients") {
  const auto a = numbers<float>({7, 33}, 1), b = numbers<float>({33, 13}, 2);
  check_product(times, a, b, numbers<float>({7, 13}, 3));
  check_product([](const auto& a, const auto& b) { return linear(a, b); }, a,
                numbers<float>({13, 33}, 4), numbers<float>({7, 13}, 5));
  check_product(times, numbers<float>({2, 3, 5, 33}, 6), numbers<float>({3, 33, 4}, 7),
                numbers<float>({2, 3, 5, 4}, 8));
  check_product([](const auto& a, const auto& b) { return xla::einsum<"bij,jk->kbi">(a, b); },
                numbers<float>({3, 5, 33}, 9), b, numbers<float>({13, 3, 5}, 10));
  check_product([](const auto& a, const auto& b) { return mv(a, b); }, a, numbers<float>({33}, 11),
                numbers<float>({7}, 12));
}

TEST_CASE("convolutions round their operands, and so do their gradients") {
  const auto x = numbers<float>({2, 33, 9, 8}, 1);
  check_product(
      [](const auto& x, const auto& w) { return conv2d(x, w, {.stride = 2, .padding = 1}); }, x,
      numbers<float>({32, 33, 3, 3}, 2), numbers<float>({2, 32, 5, 4}, 3));
  check_product([](const auto& x, const auto& w) { return conv_transpose2d(x, w, {.stride = 2}); },
                x, numbers<float>({33, 34, 2, 3}, 6), numbers<float>({2, 34, 18, 17}, 7));
  check_product([](const auto& x, const auto& w) { return conv1d(x, w); },
                numbers<float>({2, 33, 11}, 8), numbers<float>({32, 33, 3}, 9),
                numbers<float>({2, 32, 9}, 10));
  // By Winograd's algorithm as in float32: of rounded operands its error is what it was.
  check_product([](const auto& x, const auto& w) { return conv2d(x, w, {.padding = 1}); },
                numbers<float>({1, 32, 16, 16}, 11), numbers<float>({32, 32, 3, 3}, 12),
                numbers<float>({1, 32, 16, 16}, 13));
}

TEST_CASE("convolutions of groups stay float32") {
  constexpr auto f = [](auto& x, auto& w) {
    auto y = conv2d(x, w, {.padding = 1, .groups = 3});
    test::weighted_sum(y).backward();
    return y;
  };
  auto x = test::parameter(numbers<float>({2, 6, 9, 8}, 1));
  auto w = test::parameter(numbers<float>({3, 2, 3, 3}, 2));
  test::snapshot in = test::run_mode<test::mode::compiled>(autocast(f), x, w);
  CHECK(in.difference(test::run_mode<test::mode::eager>(f, x, w)) == "");
}

TEST_CASE("convolutions of fewer than 32 channels on a side stay float32") {
  constexpr auto f = [](auto& x, auto& w) {
    auto y = conv2d(x, w, {.padding = 1});
    auto z = conv_transpose2d(y, w);
    test::weighted_sum(z).backward();
    return std::tuple(y, z);
  };
  const auto check = [&](std::int64_t in, std::int64_t out) {
    CAPTURE(in, out);
    auto x = test::parameter(numbers<float>({2, in, 4, 5}, 1));
    auto w = test::parameter(numbers<float>({out, in, 2, 2}, 2));
    test::snapshot plain = test::run_mode<test::mode::eager>(f, x, w);
    test::snapshot mixed = test::run_mode<test::mode::eager>(autocast(f), x, w);
    CHECK(mixed.difference(plain).empty() == (in < 32 || out < 32));
    CHECK(test::run_mode<test::mode::traced>(autocast(f), x, w).difference(mixed) == "");
    CHECK(test::run_mode<test::mode::compiled>(autocast(f), x, w).difference(mixed) == "");
  };
  check(31, 32);
  check(32, 31);
  check(32, 32);
}

TEST_CASE("a convolution's rounded weights are kept until they are written") {
  constexpr auto f = [](const auto& x, const auto& w) {
    return conv2d(x, w, {.stride = 2, .padding = 1});
  };
  const auto x = numbers<float>({1, 33, 9, 8}, 1);
  auto w = numbers<float>({32, 33, 3, 3}, 2);
  auto compiled = xla::compile(autocast(f));
  const xla::eager_mode_guard eager;
  const auto want = autocast(f)(x, w);
  for (int i = 0; i < 3; ++i) {
    CHECK(same_bits(autocast(f)(x, w), want));
    CHECK(same_bits(compiled(x, w), want));
  }
  CHECK(apart(f(x, w), want) > rounding);
  w[0] = numbers<float>({33, 3, 3}, 3);
  const auto next = autocast(f)(x, w);
  CHECK(!same_bits(next, want));
  for (int i = 0; i < 3; ++i) CHECK(same_bits(compiled(x, w), next));
  CHECK(apart(next, f(rounded(x), rounded(w))) < sums);
}

TEST_CASE("attention rounds in both of its products, and softmax is float32's") {
  const xla::eager_mode_guard eager;
  const auto q = numbers<float>({2, 4, 5, 8}, 1), k = numbers<float>({2, 2, 6, 8}, 2);
  const auto v = numbers<float>({2, 2, 6, 8}, 3);
  constexpr auto f = [](auto& q, auto& k, auto& v) {
    return scaled_dot_product_attention(q, k, v);
  };
  const auto each = [](const auto& x) { return xla::repeat_interleave(x, 2, 1); };
  const auto scores = matmul(rounded(q), transpose(rounded(each(k)), 2, 3)) / std::sqrt(8.f);
  const auto want = matmul(rounded(softmax(scores)), rounded(each(v)));
  // A weight is rounded before it is divided by the sum of all.
  CHECK(apart(autocast(f)(q, k, v), want) < 0x1p-8);
  CHECK(apart(autocast(f)(q, k, v), f(q, k, v)) > rounding);
  test::check_modes(
      [](auto& q, auto& k, auto& v) {
        const auto y = autocast(q, [&] { return scaled_dot_product_attention(q, k, v); });
        test::weighted_sum(y).backward();
        return y;
      },
      test::parameter(q), test::parameter(k), test::parameter(v));
}

TEST_CASE("products against PyTorch's autocast, which rounds results too") {
  constexpr double result = 0x1p-8;
  const auto check = [](const std::string& name, double tolerance, auto f, const auto&... x) {
    test::check_pytorch("autocast/" + name, tolerance, autocast(f), x...);
  };
  check("matmul", result, times, numbers<float>({7, 33}), numbers<float>({33, 5}, 1));
  check(
      "linear", result, [](auto& x, auto& w) { return linear(x, w); }, numbers<float>({3, 4, 19}),
      numbers<float>({6, 19}, 1));
  check(
      "einsum", result, [](auto& a, auto& b) { return xla::einsum<"bij,jk->kbi">(a, b); },
      numbers<float>({3, 5, 18}), numbers<float>({18, 2}, 1));
  check(
      "bmm", result, [](auto& a, auto& b) { return bmm(a, b); }, numbers<float>({2, 3, 21}),
      numbers<float>({2, 21, 4}, 1));
  check(
      "conv1d", result, [](auto& x, auto& w) { return conv1d(x, w); }, numbers<float>({1, 33, 3}),
      numbers<float>({32, 33, 1}, 1));
  check(
      "conv2d", result, [](auto& x, auto& w) { return conv2d(x, w, {.stride = 2, .padding = 1}); },
      numbers<float>({1, 33, 3, 4}), numbers<float>({32, 33, 1, 2}, 1));
  check(
      "conv_transpose2d", result,
      [](auto& x, auto& w) { return conv_transpose2d(x, w, {.stride = 2}); },
      numbers<float>({1, 33, 2, 3}), numbers<float>({33, 32, 1, 2}, 1));
  check(
      "attention", 8 * result,
      [](auto& q, auto& k, auto& v) { return scaled_dot_product_attention(q / 4, k / 4, v); },
      numbers<float>({2, 2, 5, 8}), numbers<float>({2, 2, 6, 8}, 1),
      numbers<float>({2, 2, 6, 8}, 2));
}

TEST_CASE(
    "3x3 convolutions, sums with products, and attention's forms against PyTorch's autocast") {
  constexpr double result = 0x1p-8;
  const auto check = [](const std::string& name, double tolerance, auto f, const auto&... x) {
    test::check_pytorch("autocast/" + name, tolerance, autocast(f), x...);
  };
  check(
      "conv2d_3x3", result, [](auto& x, auto& w) { return conv2d(x, w, {.padding = 1}); },
      numbers<float>({1, 32, 4, 5}), numbers<float>({32, 32, 3, 3}, 1));
  // What is added is rounded there, too.
  check(
      "addmm", 2 * result, [](auto& c, auto& a, auto& b) { return addmm(c, a, b); },
      numbers<float>({7, 5}, 2), numbers<float>({7, 33}), numbers<float>({33, 5}, 1));
  check(
      "baddbmm", 2 * result, [](auto& c, auto& a, auto& b) { return c + bmm(a, b); },
      numbers<float>({2, 3, 4}, 2), numbers<float>({2, 3, 21}), numbers<float>({2, 21, 4}, 1));
  const auto q = numbers<float>({1, 4, 6, 8}), k = numbers<float>({1, 4, 6, 8}, 1);
  const auto v = numbers<float>({1, 4, 6, 8}, 2);
  check(
      "attention_shared_heads", 8 * result,
      [](auto& q, auto& k, auto& v) { return scaled_dot_product_attention(q / 4, k / 4, v); }, q,
      numbers<float>({1, 2, 6, 8}, 1), numbers<float>({1, 2, 6, 8}, 2));
  check(
      "attention_causal", 8 * result,
      [](auto& q, auto& k, auto& v) {
        return scaled_dot_product_attention(q / 4, k / 4, v, {.causal = true});
      },
      q, k, v);
  check(
      "attention_mask", 8 * result,
      [](auto& q, auto& k, auto& v) {
        const auto i = xla::arange(6);
        const auto shown = remainder(unsqueeze(i * 3, 1) + i, 4) != 1;
        return scaled_dot_product_attention(q / 4, k / 4, v, shown);
      },
      q, k, v);
  check(
      "attention_bias", 8 * result,
      [](auto& q, auto& k, auto& v, auto& b) {
        return scaled_dot_product_attention(q / 4, k / 4, v, b);
      },
      q, k, v, numbers<float>({6, 6}, 3));
}

TEST_CASE("nothing else is rounded: other ops, other element types") {
  const auto a = numbers<float>({5, 5}, 1);
  const auto check = [](auto f, const auto& x) {
    test::snapshot in = test::run_mode<test::mode::compiled>(autocast(f), x);
    CHECK(in.difference(test::run_mode<test::mode::eager>(f, x)) == "");
  };
  check([](auto& a) { return softmax(exp(a) * a + 1 / (a * a + 1)); }, a);
  check([](auto& a) { return matmul(a, a); }, numbers<double>({5, 5}, 1));
  check([](auto& a) { return matmul(a, a); }, numbers<std::int64_t>({5, 5}, 1));
  check([](auto& a) { return xla::cast<float>(matmul(a, a)); }, xla::cast<xla::bfloat16>(a));
}

TEST_CASE("numbers that bfloat16 rounds otherwise: infinity, NaN, denormals") {
  const xla::eager_mode_guard eager;
  constexpr float inf = std::numeric_limits<float>::infinity();
  const auto x = xla::tensor<float>(
      {{3.4e38f, 0.f}, {std::nanf(""), 1.f}, {1e-40f, 0.f}, {1.f + 0x1p-8f, 0.f}});
  const auto one = xla::eye<float>(2);
  const auto y = autocast(times)(x, one).to_vector();
  CHECK(y[0] == inf);
  CHECK(std::isnan(y[2]));
  CHECK(std::abs(y[4] - 1e-40f) <= 1e-40f);  // or 0, where the processor's instructions say so
  CHECK(y[6] == 1);                          // half way, to even
}

TEST_CASE("autocast within autocast, off and on") {
  constexpr auto nested = [](auto& a, auto& b) {
    return autocast(a, [&] {
      const auto first = matmul(a, b);
      const auto off =
          autocast(a,
                   [&] {
                     const auto y = matmul(a, b);
                     return std::tuple(y, autocast(b, [&] { return matmul(a, b); }), matmul(a, b));
                   },
                   {.enabled = false});
      return std::tuple_cat(std::tuple(first, matmul(a, b)), off);
    });
  };
  const auto a = numbers<float>({7, 33}, 1), b = numbers<float>({33, 13}, 2);
  test::check_modes(nested, a, b);
  const xla::eager_mode_guard eager;
  const auto [first, again, off, on, off_again] = nested(a, b);
  CHECK(same_bits(off, matmul(a, b)));
  CHECK(same_bits(off_again, off));
  CHECK(same_bits(again, first));
  CHECK(same_bits(on, first));
  CHECK(apart(first, off) > rounding);
}

TEST_CASE("the mode is a thread's, and as it was when a body throws") {
  const auto a = numbers<float>({7, 33}, 1), b = numbers<float>({33, 13}, 2);
  const xla::eager_mode_guard eager;
  const auto want = matmul(a, b);
  CHECK_THROWS_AS(autocast(a, [&] { return throw std::runtime_error("stop"), matmul(a, b); }),
                  std::runtime_error);
  CHECK(same_bits(matmul(a, b), want));
  Tensor<float, 2> there;
  autocast(a, [&] {
    std::thread([&] {
      const xla::eager_mode_guard eager;
      there = matmul(a, b);
    }).join();
  });
  CHECK(same_bits(there, want));
}

TEST_CASE("second derivatives are rounded as well") {
  constexpr auto second = [](auto& a, auto& b, auto& d) {
    const auto y = autocast(a, [&] { return tanh(matmul(a, b)); });
    const auto g = xla::grad(sum(y * d), a, {.create_graph = true});
    sum(g * g).backward();
    return g;
  };
  auto a = test::parameter(numbers<float>({4, 9}, 1)),
       b = test::parameter(numbers<float>({9, 5}, 2));
  auto d = numbers<float>({4, 5}, 3);
  test::check_modes(second, a, b, d);
  const std::string graph = xla::compile(second).graph(xla::Stage::captured, a, b, d);
  std::size_t products = 0, of_bfloat16 = 0;
  for (std::size_t at = 0; (at = graph.find("= matmul(", at)) != graph.npos; ++at) {
    ++products;
    of_bfloat16 +=
        graph.substr(at, graph.find('\n', at) - at).find(" precision bfloat16") != graph.npos;
  }
  CHECK(products >= 5);
  CHECK(of_bfloat16 == products);
}

namespace {

/// Operands of products that are made where they are read alone: forward, backward, of a batch.
constexpr auto layers = [](auto& x, auto& w, auto& v) {
  const auto h = xla::gelu(linear(xla::softmax(x), w));
  const auto y = linear(h, v);
  const auto z = matmul(xla::silu(y), transpose(xla::tanh(y), 1, 2));
  test::weighted_sum(z).backward();
  return z;
};

}  // namespace

TEST_CASE("operands that are stored as bfloat16: the same bits in every mode, in less memory") {
  const auto x = test::parameter(numbers<float>({3, 9, 33}, 1));
  const auto w = test::parameter(numbers<float>({64, 33}, 2));
  const auto v = test::parameter(numbers<float>({21, 64}, 3));
  const auto few = test::parameter(numbers<float>({1, 3, 33}, 4));
  test::each_bfloat16_algorithm([&] {
    test::check_modes(autocast(layers), x, w, v);
    test::check_modes(autocast(layers), few, w, v);
  });
  constexpr auto two = [](auto& v, auto& w) {
    return matmul(xla::tanh(v), w) + matmul(xla::sigmoid(v), w);
  };
  auto whole = xla::compile(autocast(two));
  auto without = xla::compile<xla::tags::without<"bfloat16_storage">>(autocast(two));
  const auto thin = numbers<float>({64, 2}, 5);
  const auto arena = [&](auto& f) { return f.memory_analysis(v, thin).arena; };
  CHECK(4 * arena(whole) < 3 * arena(without));
}

TEST_CASE("a compiled function is what it was compiled as, called in autocast or in a body of it") {
  const auto a = numbers<float>({7, 33}, 1), b = numbers<float>({33, 13}, 2);
  const xla::eager_mode_guard eager;
  auto plain = xla::compile(times);
  auto mixed = xla::compile(autocast(times));
  const auto want = matmul(a, b), want_mixed = autocast(times)(a, b);
  CHECK(same_bits(autocast(a, [&] { return plain(a, b); }), want));
  CHECK(same_bits(mixed(a, b), want_mixed));
  auto outer = xla::compile([](auto& f, auto& a, auto& b) {
    return autocast(a, [&] { return std::tuple(f(a, b), matmul(a, b)); });
  });
  const auto [inner, beside] = outer(plain, a, b);
  CHECK(same_bits(inner, want));
  CHECK(same_bits(beside, want_mixed));
}

TEST_CASE("a model in autocast, compiled and called") {
  xla::manual_seed(1);
  const xla::eager_mode_guard eager;
  nn::Linear model(33, 13);
  const auto x = numbers<float>({7, 33}, 1);
  const auto want = autocast(x, [&] { return model(x); });
  CHECK(apart(model(x), want) > rounding);
  CHECK(same_bits(autocast(model)(x), want));
  auto predict = xla::compile(autocast(model));
  CHECK(same_bits(predict(x), want));
  model.weight.copy_(model.weight * 2);
  CHECK(same_bits(predict(x), autocast(model)(x)));
  auto within = xla::compile([](auto& model, auto& x) { return autocast(model)(x); });
  CHECK(same_bits(within(model, x), autocast(model)(x)));
}

TEST_CASE("a compiled function whose backward alone rounds brings kernels for it") {
  static constexpr auto own = xla::custom_gradient(
      [](const Tensor<float, 2>& a) { return xla::save_for_backward(exp(a), a); },
      [](const auto& saved, const Tensor<float, 2>& d) {
        const auto& [a] = saved;
        return matmul(d, matmul(transpose(a), a));
      });
  constexpr auto by_own = [](const auto& a) { return own(a); };
  const xla::eager_mode_guard eager;
  const auto gradient = [&](auto f) {
    auto x = test::parameter(numbers<float>({7, 33}, 1));
    test::weighted_sum(f(x)).backward();
    return x.grad();
  };
  xla::kernel::the_rounded_matmul = nullptr;  // as if no autocast had run yet
  const auto got = gradient(xla::compile(autocast(by_own)));
  CHECK(same_bits(got, gradient(autocast(by_own))));
  CHECK(apart(got, gradient(by_own)) > rounding);
}

TEST_CASE("gradients of a compiled function's result, and of a function with its own") {
  const auto a = numbers<float>({7, 33}, 1), b = numbers<float>({33, 13}, 2);
  const auto grads = [&](bool eager, auto f) {
    const xla::eager_mode_guard as_told(eager);
    auto x = test::parameter(a), y = test::parameter(b);
    test::weighted_sum(f(x, y)).backward();
    test::snapshot s;
    s.add(x);
    s.add(y);
    return s;
  };
  const auto want = grads(true, autocast(times));
  CHECK(grads(true, times).difference(want) != "");
  CHECK(grads(true, xla::compile(autocast(times))).difference(want) == "");
  CHECK(grads(false, xla::compile(autocast(times))).difference(want) == "");
  static constexpr auto own = xla::custom_gradient(
      [](const Tensor<float, 2>& a, const Tensor<float, 2>& b) {
        return xla::save_for_backward(matmul(a, b), a, b);
      },
      [](const auto& saved, const Tensor<float, 2>& d) {
        const auto& [a, b] = saved;
        return std::tuple(matmul(d, transpose(b)), matmul(transpose(a), d));
      });
  constexpr auto by_own = [](const auto& a, const auto& b) { return own(a, b); };
  CHECK(grads(true, autocast(by_own)).difference(want) == "");
  CHECK(grads(false, autocast(by_own)).difference(want) == "");
  CHECK(grads(false, xla::compile(autocast(by_own))).difference(want) == "");
  test::check_modes(
      [](auto& x, auto& y) {
        const auto z = autocast(x, [&] { return own(x, y); });
        test::weighted_sum(z).backward();
        return z;
      },
      test::parameter(a), test::parameter(b));
}

TEST_CASE("precision is seen: in graphs, profiles, counters") {
  auto a = numbers<float>({7, 33}, 1), b = numbers<float>({33, 13}, 2);
  const auto graph = [&](auto f) { return xla::compile(f).graph(xla::Stage::captured, a, b); };
  CHECK_THAT(graph(autocast(times)), contains("matmul(%0, %1) precision bfloat16 : float32"));
  CHECK_THAT(graph(times), contains("matmul(%0, %1) : float32"));
  CHECK_THAT(xla::compile(autocast(times)).graph(xla::Stage::planned, a, b),
             contains("precision bfloat16"));
  const xla::eager_mode_guard eager;
  const auto profiled = [](auto f, const auto&... x) {
    auto compiled = xla::compile(f);
    const xla::Profile p = xla::profile(compiled, x...);
    const auto steps = p.steps();
    const auto s = std::find_if(steps.begin(), steps.end(),
                                [](const auto& one) { return one.kind == "product"; });
    REQUIRE(s != steps.end());
    return s->name + "; " + s->attributes;
  };
  CHECK(profiled(times, a, b) == "matmul 7x13x33; ");
  CHECK(profiled(autocast(times), a, b) == "matmul 7x13x33 bfloat16; precision bfloat16");
  const auto before = test::count_of("xla::matmul"),
             rounded = test::count_of("xla::matmul::bfloat16");
  autocast(times)(a, b);
  CHECK(test::count_of("xla::matmul::bfloat16") == rounded + 1);
  CHECK(test::count_of("xla::matmul") == before);
  const auto narrow = test::count_of("xla::convolution");
  const auto image = numbers<float>({1, 3, 4, 4}, 1), weight = numbers<float>({32, 3, 3, 3}, 2);
  autocast(image, [&] { return conv2d(image, weight); }).to_vector();
  CHECK(test::count_of("xla::convolution") == narrow + 1);
  const auto wide = test::count_of("xla::convolution::bfloat16");
  const auto images = numbers<float>({1, 33, 4, 4}, 1), filters = numbers<float>({32, 33, 3, 3}, 2);
  constexpr auto convolved = [](const auto& x, const auto& w) { return conv2d(x, w); };
  autocast(convolved)(images, filters).to_vector();
  CHECK(test::count_of("xla::convolution::bfloat16") == wide + 1);
  CHECK(test::count_of("xla::convolution") == narrow + 1);
  CHECK_THAT(profiled(autocast(convolved), images, filters),
             contains(" bfloat16") && contains("precision bfloat16"));
  const auto q = numbers<float>({1, 2, 5, 8}, 3);
  constexpr auto attend = [](const auto& q) { return scaled_dot_product_attention(q, q, q); };
  const auto heads = test::count_of("xla::attention"),
             rounded_heads = test::count_of("xla::attention::bfloat16");
  autocast(attend)(q).to_vector();
  CHECK(test::count_of("xla::attention::bfloat16") == rounded_heads + 1);
  CHECK(test::count_of("xla::attention") == heads);
  CHECK_THAT(profiled(autocast(attend), q),
             contains(" bfloat16; ") && contains("precision bfloat16"));
}
