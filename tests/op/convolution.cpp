// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/convolution.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/threads.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/slice.hpp"

using test::check_equal;
using test::numbers;

namespace {

/// What the tests make convolutions of.
struct convolution {
  std::int64_t batch, in, height, width, out, kernel[2];
  xla::Conv2dOptions options;

  static std::int64_t along(const xla::HeightWidth& n, int axis) {
    return axis == 0 ? n.height : n.width;
  }
  std::int64_t size(int axis) const { return axis == 0 ? height : width; }
  std::int64_t out_size(int axis) const {
    return (size(axis) + 2 * along(options.padding.zeros, axis) -
            along(options.dilation, axis) * (kernel[axis] - 1) - 1) /
               along(options.stride, axis) +
           1;
  }
  std::int64_t part() const { return in / options.groups; }
  test::sizes_t x_sizes() const { return {batch, in, height, width}; }
  test::sizes_t weight_sizes() const { return {out, part(), kernel[0], kernel[1]}; }
  test::sizes_t y_sizes() const { return {batch, out, out_size(0), out_size(1)}; }

  template <class T>
  xla::Tensor<T, 4> x() const {
    return numbers<T>({batch, in, height, width}, 1);
  }
  template <class T>
  xla::Tensor<T, 4> weight() const {
    return numbers<T>({out, part(), kernel[0], kernel[1]}, 2);
  }
  template <class T>
  xla::Tensor<T, 4> y() const {
    return numbers<T>({batch, out, out_size(0), out_size(1)}, 3);
  }

  /// Calls f(element of x, of the weight, of y) for all products.
  template <class F>
  void each(F f) const {
    const std::int64_t rows = out_size(0), columns = out_size(1), outs = out / options.groups;
    for (std::int64_t i = 0; i < batch * out * rows * columns; ++i) {
      const std::int64_t o = i / columns / rows % out, image = i / columns / rows / out;
      for (std::int64_t k = 0; k < part() * kernel[0] * kernel[1]; ++k) {
        const std::int64_t c = o / outs * part() + k / kernel[1] / kernel[0];
        const std::int64_t y = i / columns % rows * options.stride.height -
                               options.padding.zeros.height +
                               k / kernel[1] % kernel[0] * options.dilation.height;
        const std::int64_t x = i % columns * options.stride.width - options.padding.zeros.width +
                               k % kernel[1] * options.dilation.width;
        if (y < 0 || y >= height || x < 0 || x >= width) continue;
        f(static_cast<std::size_t>(((image * in + c) * height + y) * width + x),
          static_cast<std::size_t>(o * part() * kernel[0] * kernel[1] + k),
          static_cast<std::size_t>(i));
      }
    }
  }
};

const convolution cases[] = {
    {2, 3, 7, 6, 5, {3, 3}, {.padding = 1}},
    {1, 4, 9, 8, 6, {3, 2}, {.stride = 2, .padding = {1, 0}, .groups = 2}},
    {2, 1, 5, 5, 1, {1, 1}, {}},
    {1, 1, 1, 1, 3, {3, 3}, {.padding = 1}},  // one pixel
    {3, 2, 3, 4, 4, {5, 5}, {.padding = 2}},  // a kernel larger than the image
    {1, 6, 11, 10, 6, {3, 3}, {.padding = 2, .dilation = 2, .groups = 6}},  // depthwise
    {2, 6, 7, 9, 12, {3, 1}, {.stride = {1, 2}, .padding = {1, 0}, .groups = 3}},
    {1, 2, 9, 9, 3, {2, 2}, {.stride = 4}},  // stride beyond the kernel
    {1, 3, 12, 13, 17, {7, 7}, {.stride = 2, .padding = 3}},
    {0, 3, 5, 5, 4, {3, 3}, {.padding = 1}},  // an empty batch
    {1, 40, 4, 5, 33, {1, 1}, {.stride = 2}},
    {2, 3, 8, 7, 2, {3, 2}, {.stride = {3, 1}, .padding = {4, 3}, .dilation = {1, 3}}},
    {1, 16, 33, 35, 20, {3, 3}, {.padding = 1}},
};

template <class T>
void check_against_loops(const convolution& c) {
  const double tolerance = std::is_same_v<T, float> ? 2e-5 : 1e-13;
  const auto x = c.x<T>(), w = c.weight<T>(), d = c.y<T>();
  const auto xs = x.to_vector(), ws = w.to_vector(), ds = d.to_vector();
  std::vector<double> y(ds.size()), dx(xs.size()), dw(ws.size());
  c.each([&](std::size_t i, std::size_t k, std::size_t o) {
    y[o] += static_cast<double>(xs[i]) * ws[k];
    dx[i] += static_cast<double>(ds[o]) * ws[k];
    dw[k] += static_cast<double>(xs[i]) * ds[o];
  });
  const auto check = [&](const auto& got, const test::sizes_t& sizes, const auto& want) {
    double most = 1;
    for (double v : want) most = std::max(most, std::abs(v));
    check_equal(got, sizes, std::vector<T>(want.begin(), want.end()), tolerance, most);
  };
  auto px = test::parameter(x), pw = test::parameter(w);
  const auto result = conv2d(px, pw, c.options);
  check(result, c.y_sizes(), y);
  sum(result * d).backward();
  check(px.grad(), c.x_sizes(), dx);
  check(pw.grad(), c.weight_sizes(), dw);
}

/// y and all gradients of a convolution with a bias.
constexpr auto all_parts = [](auto& x, auto& w, auto& b) {
  const auto y = conv2d(x, w, b, {.stride = {2, 1}, .padding = {1, 2}, .groups = 2});
  sum(y * y).backward();
  return y;
};

}  // namespace

TEMPLATE_TEST_CASE("a convolution and its gradients are the sums that they are", "", float,
                   double) {
  const xla::eager_mode_guard eager;
  for (const convolution& c : cases) {
    CAPTURE(c.batch, c.in, c.height, c.width, c.out, c.kernel[0], c.kernel[1]);
    check_against_loops<TestType>(c);
  }
}

TEST_CASE("convolutions do not depend on the number of threads") {
  const xla::eager_mode_guard eager;
  const test::restore_threads guard;
  const convolution large[] = {
      {1, 16, 33, 35, 20, {3, 3}, {.padding = 1}},
      {2, 32, 20, 20, 32, {3, 3}, {.padding = 1}},                // Winograd's
      {2, 32, 28, 28, 32, {3, 3}, {.padding = 1, .groups = 32}},  // depthwise
      {2, 32, 15, 15, 32, {3, 3}, {.stride = 2, .padding = 1, .groups = 8}},
      {1, 64, 21, 21, 48, {1, 1}, {.stride = 2}},
  };
  for (const convolution& c : large) {
    CAPTURE(c.in, c.out, c.options.groups);
    const auto run = [&] {
      auto x = test::parameter(c.x<float>()), w = test::parameter(c.weight<float>());
      const auto y = conv2d(x, w, c.options);
      sum(y * y).backward();
      return std::tuple(y.to_vector(), x.grad().to_vector(), w.grad().to_vector());
    };
    xla::set_num_threads(1);
    const auto one = run();
    xla::set_num_threads(3);
    CHECK(run() == one);
  }
}

TEST_CASE("convolutions are the same in every mode, with their gradients") {
  test::check_modes(all_parts, test::parameter(numbers<float>({2, 4, 7, 6})),
                    test::parameter(numbers<float>({6, 2, 3, 3})),
                    test::parameter(numbers<float>({6})));
  test::check_modes(all_parts, test::parameter(numbers<double>({1, 2, 1, 1})),
                    test::parameter(numbers<double>({2, 1, 3, 5})),
                    test::parameter(numbers<double>({2})));
  test::check_modes(all_parts, test::parameter(numbers<float>({0, 2, 4, 4})),
                    test::parameter(numbers<float>({4, 1, 2, 2})),
                    test::parameter(numbers<float>({4})));
}

TEST_CASE("a net of convolutions by all algorithms is the same in every mode") {
  // Three channels, Winograd's, a depthwise one with stride 2, one by one pixel.
  const auto net = [](auto& x, auto& stem, auto& same, auto& depthwise, auto& last) {
    const auto a = xla::relu(conv2d(x, stem, {.padding = 1}));
    const auto b = xla::relu(conv2d(a, same, {.padding = 1}));
    const auto c = conv2d(b, depthwise, {.stride = 2, .padding = 1, .groups = 32});
    const auto y = conv2d(c, last);
    sum(y * y).backward();
    return y;
  };
  test::check_modes(net, test::parameter(numbers<float>({2, 3, 21, 18})),
                    test::parameter(numbers<float>({32, 3, 3, 3})),
                    test::parameter(numbers<float>({32, 32, 3, 3})),
                    test::parameter(numbers<float>({32, 1, 3, 3})),
                    test::parameter(numbers<float>({20, 32, 1, 1})));
}

TEST_CASE(
    "NaN, infinity and large numbers affect only results whose 3 x 3 window has them, in every "
    "mode") {
  // A compiled program adds the bias, and what the convolution reads, tile by tile.
  const auto body = [](auto& x, auto& w, auto& bias) {
    const auto y = xla::relu(conv2d(x, w, bias, {.padding = 1}) + x);
    sum(y).backward();
    return y;
  };
  constexpr std::int64_t height = 9, width = 13, at_y = 4, at_x = 4;
  const auto w = numbers<float>({32, 32, 3, 3});
  const auto bias = numbers<float>({32});
  const auto plain = numbers<float>({2, 32, height, width});
  const xla::eager_mode_guard eager;
  const auto run = [&](const xla::Tensor<float, 4>& x) {
    auto own = test::parameter(x), weight = test::parameter(w);
    auto b = test::parameter(bias);
    const auto y = body(own, weight, b);
    return std::array{y.to_vector(), own.grad().to_vector(), weight.grad().to_vector()};
  };
  const auto untouched = run(plain);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float outlier : {std::nanf(""), -infinity, 3e38f, 1e6f}) {
    CAPTURE(outlier);
    auto x = plain.detach();
    x[1][22][at_y][at_x] = outlier;
    test::check_modes(body, test::parameter(x), test::parameter(w), test::parameter(bias));
    const auto got = run(x);
    xla::set_winograd(false);
    const auto want = run(x);
    xla::set_winograd(true);
    for (std::size_t part = 0; part < got.size(); ++part)
      for (std::size_t i = 0; i < got[part].size(); ++i) {
        const float a = got[part][i], b = want[part][i];
        const bool same = std::isfinite(b) ? std::abs(a - b) <= 2e-5f * std::max(40.f, std::abs(b))
                                           : a == b || (a != a && b != b);
        if (!same) FAIL_CHECK("result " << part << ", element " << i << ": " << a << ", not " << b);
      }
    for (std::size_t i = 0; i < got[0].size(); ++i) {
      const auto pixel = static_cast<std::int64_t>(i) % (height * width);
      const bool sees = std::abs(pixel / width - at_y) <= 1 && std::abs(pixel % width - at_x) <= 1;
      if (!sees && !(std::abs(got[0][i] - untouched[0][i]) < 1e-3f))
        FAIL_CHECK("pixel " << pixel << ": " << got[0][i]);
    }
  }
}

TEST_CASE("other forms of convolutions are the same in every mode, with their gradients") {
  const auto body = [](auto& x, auto& w, auto& line, auto& row) {
    const auto y = conv_transpose2d(
        x, w, {.stride = 2, .padding = {1, 0}, .output_padding = {1, 0}, .groups = 2});
    const auto z = conv1d(line, row, {.stride = 2, .padding = 1, .dilation = 2});
    const auto back = conv_transpose1d(z, row, {.stride = 2, .padding = 1, .dilation = 2});
    sum(y * y).backward();
    sum(back * back).backward();
    return std::tuple(y, z, back);
  };
  test::check_modes(body, test::parameter(numbers<float>({2, 4, 5, 3})),
                    test::parameter(numbers<float>({4, 3, 3, 2})),
                    test::parameter(numbers<float>({2, 3, 11})),
                    test::parameter(numbers<float>({4, 3, 3})));
  test::check_modes(body, test::parameter(numbers<double>({1, 2, 1, 1})),
                    test::parameter(numbers<double>({2, 1, 3, 1})),
                    test::parameter(numbers<double>({1, 1, 5})),
                    test::parameter(numbers<double>({1, 1, 2})));
}

TEST_CASE("a convolution along one column has the bits of conv1d, in every mode, and its gradients") {
  const auto column = [](auto& x, auto& w, auto& b) {
    const auto y = relu(
        conv2d(x, w, b, {.stride = {2, 1}, .padding = {3, 0}, .dilation = {2, 1}, .groups = 2}));
    sum(y * y).backward();
    return y;
  };
  const auto line = [](auto& x, auto& w, auto& b) {
    const auto y =
        relu(conv1d(x, w, b, {.stride = 2, .padding = 3, .dilation = 2, .groups = 2}));
    sum(y * y).backward();
    return y;
  };
  const auto sizes = [](std::int64_t in, std::int64_t out, std::int64_t taps) {
    const auto x = numbers<float>({3, in, 70}, 1), w = numbers<float>({out, in / 2, taps}, 2);
    const auto b = numbers<float>({out}, 3);
    return std::tuple(x, w, b);
  };
  const auto flat = [](const auto& t) { return t.to_vector(); };
  // Dense groups, and groups of one channel.
  for (const auto& [x, w, b] : {sizes(36, 34, 5), sizes(2, 2, 7)}) {
    const auto x4 = test::parameter(xla::unsqueeze(x, 3)), w4 = test::parameter(xla::unsqueeze(w, 3));
    const auto x3 = test::parameter(x), w3 = test::parameter(w);
    const auto b3 = test::parameter(b), b4 = test::parameter(b);
    test::check_modes(column, x4, w4, b4);
    const xla::eager_mode_guard eager(true);
    CHECK(flat(column(x4, w4, b4)) == flat(line(x3, w3, b3)));
    CHECK(flat(x4.grad()) == flat(x3.grad()));
    CHECK(flat(w4.grad()) == flat(w3.grad()));
  }
}

TEST_CASE("the gradients of convolutions, and those of the gradients") {
  const auto forward = [](auto& x, auto& w) {
    return conv2d(x, w, {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2});
  };
  const auto x = numbers<double>({2, 4, 4, 5}, 1), w = numbers<double>({2, 2, 3, 2}, 2);
  test::check_gradient(forward, x, w);
  const auto transposed = [](auto& y, auto& w) {
    return conv_transpose2d(y, w, {.stride = {2, 1}, .padding = 1, .output_padding = {1, 0}});
  };
  const auto y = numbers<double>({1, 2, 3, 2}, 3), v = numbers<double>({2, 3, 3, 2}, 4);
  test::check_gradient(transposed, y, v);
  // Gradients of a sum of squares have both operands in them.
  const auto of_input = [](auto f) {
    return [f](auto& a, auto& b) {
      const auto r = f(a, b);
      return xla::grad(sum(r * r), a, {.create_graph = true});
    };
  };
  const auto of_weight = [](auto f) {
    return [f](auto& a, auto& b) {
      const auto r = f(a, b);
      return xla::grad(sum(r * r), b, {.create_graph = true});
    };
  };
  const auto few = numbers<double>({1, 2, 3, 3}, 5), small = numbers<double>({2, 1, 2, 2}, 6);
  test::check_gradient(of_input(forward), few, small);
  test::check_gradient(of_weight(forward), few, small);
  test::check_gradient(of_input(transposed), few, small);
  test::check_gradient(of_weight(transposed), few, small);
}

TEST_CASE("padding is numbers, same or valid") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3, 7, 6}), w = numbers<float>({4, 3, 4, 3}, 1);
  check_equal(conv2d(x, w, {.padding = xla::tags::valid}), conv2d(x, w));
  // Of three zeros along the height two come after.
  const auto padded = pad(x, {{0, 0}, {0, 0}, {1, 2}, {1, 1}});
  check_equal(conv2d(x, w, {.padding = xla::tags::same}), conv2d(padded, w));
  check_equal(conv2d(x, w, {.padding = xla::tags::same, .dilation = {1, 2}}),
              conv2d(pad(x, {{0, 0}, {0, 0}, {1, 2}, {2, 2}}), w, {.dilation = {1, 2}}));
  CHECK(conv1d(numbers<float>({2, 3, 8}), numbers<float>({5, 3, 4}), {.padding = xla::tags::same})
            .sizes() == test::sizes_t{2, 5, 8});
}

TEST_CASE("a transposed convolution is the gradient of a convolution, and can be larger") {
  const xla::eager_mode_guard eager;
  const auto y = numbers<double>({2, 4, 3, 5}), w = numbers<double>({4, 3, 3, 2}, 1);
  auto x = test::parameter(numbers<double>({2, 6, 7, 7}));
  sum(conv2d(x, w, {.stride = {2, 1}, .padding = {0, 0}, .groups = 2}) *
      numbers<double>({2, 4, 3, 6}))
      .backward();
  check_equal(conv_transpose2d(numbers<double>({2, 4, 3, 6}), w, {.stride = {2, 1}, .groups = 2}),
              x.grad());
  // Where output_padding is the stride or more, what is beyond the last tap is 0.
  const auto most = conv_transpose2d(y, w, {.output_padding = {2, 0}, .dilation = {3, 1}});
  const auto least = conv_transpose2d(y, w, {.dilation = {3, 1}});
  check_equal(most, pad(least, {{0, 0}, {0, 0}, {0, 2}, {0, 0}}));
  // Of what padding cuts off output_padding takes back.
  check_equal(
      conv_transpose2d(y, w, {.padding = {2, 0}, .output_padding = {2, 0}, .dilation = {3, 1}}),
      slice(least, 2, 2, xla::none));
  const auto bias = numbers<double>({3}, 2);
  check_equal(conv_transpose2d(y, w, bias, {.stride = 2}),
              conv_transpose2d(y, w, {.stride = 2}) + reshape(bias, {3, 1, 1}));
}

TEST_CASE("a compiled function convolves images of any size") {
  auto step = xla::compile([](auto& x, auto& w, auto& b) {
    const auto y = conv2d(x, w, b, {.stride = 2, .padding = 1});
    const auto z = conv_transpose2d(y, w, {.stride = 2, .padding = 1, .output_padding = 1});
    sum(z * z).backward();
    return std::tuple(y, z);
  });
  const auto eager = [](auto& x, auto& w, auto& b) {
    const xla::eager_mode_guard guard;
    const auto y = conv2d(x, w, b, {.stride = 2, .padding = 1});
    const auto z = conv_transpose2d(y, w, {.stride = 2, .padding = 1, .output_padding = 1});
    sum(z * z).backward();
    return std::tuple(y, z);
  };
  for (const std::int64_t batch : {1, 3, 0})
    for (const auto& [height, width] : {std::pair(6, 8), {10, 6}, {2, 2}}) {
      CAPTURE(batch, height, width);
      const auto start = [&, h = height, w = width] {
        return std::tuple(test::parameter(numbers<float>({batch, 3, h, w})),
                          test::parameter(numbers<float>({4, 3, 3, 3}, 1)),
                          test::parameter(numbers<float>({4}, 2)));
      };
      auto mine = start(), theirs = start();
      const auto [y, z] = std::apply(step, mine);
      const auto [y2, z2] = std::apply(eager, theirs);
      check_equal(y, y2);
      check_equal(z, z2);
      check_equal(std::get<0>(mine).grad(), std::get<0>(theirs).grad());
      check_equal(std::get<1>(mine).grad(), std::get<1>(theirs).grad());
      check_equal(std::get<2>(mine).grad(), std::get<2>(theirs).grad());
    }
  auto small = test::parameter(numbers<float>({1, 3, 0, 8}));
  auto w = test::parameter(numbers<float>({4, 3, 3, 3}));
  auto b = test::parameter(numbers<float>({4}));
  CHECK_THROWS_WITH(step(small, w, b),
                    test::contains("conv2d: the kernel is larger than the padded input: axis 2 of "
                                   "argument 0 + 2 is 2 and has to be at least 3"));
}

TEST_CASE("convolutions of bfloat16 compute in float") {
  const xla::eager_mode_guard eager;
  const auto x = cast<xla::bfloat16>(numbers<float>({1, 2, 5, 5}));
  const auto w = cast<xla::bfloat16>(numbers<float>({3, 2, 3, 3}, 1));
  check_equal(cast<float>(conv2d(x, w)),
              cast<float>(cast<xla::bfloat16>(conv2d(cast<float>(x), cast<float>(w)))));
}

TEST_CASE("convolutions of sizes that do not fit are refused") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 4, 7, 6}), w = numbers<float>({6, 2, 3, 3});
  const auto refused = [&](const xla::Conv2dOptions& o, const std::string& sentence) {
    CHECK_THROWS_WITH(conv2d(x, w, o), test::contains("conv2d: " + sentence));
  };
  refused({},
          "a weight of shape (6, 2, 3, 3) with groups 1 takes 2 channels, and the input (2, 4, "
          "7, 6) has 4");
  refused({.groups = 0}, "groups is 0, and has to be from 1 to 65536");
  refused({.stride = {1, 0}, .groups = 2}, "stride is 0, and has to be from 1 to 255");
  refused({.padding = {-1, 0}, .groups = 2}, "padding is -1, and has to be from 0 to 4095");
  refused(
      {.dilation = 4, .groups = 2},
      "the kernel is larger than the padded input: dilation 4 * (kernel 3 - 1) + 1 = 9, padding "
      "0 + size 7 + padding 0 = 7");
  refused({.stride = 2, .padding = xla::tags::same, .groups = 2},
          "padding = xla::tags::same needs stride 1, and it is 2");
  CHECK_THROWS_WITH(
      conv2d(x, numbers<float>({5, 2, 3, 3}), {.groups = 2}),
      test::contains("conv2d: 5 channels cannot be divided into groups 2: the first axis "
                     "of a weight of shape (5, 2, 3, 3)"));
  CHECK_THROWS_WITH(conv2d(x, numbers<float>({5, 4, 3, 0})),
                    test::contains("a kernel without elements: a weight of shape (5, 4, 3, 0)"));
  CHECK_THROWS_WITH(conv2d(x, w, numbers<float>({5}), {.groups = 2}),
                    test::contains("conv2d: a bias of shape (5,) for 6 outputs"));
  CHECK_THROWS_WITH(conv1d(numbers<float>({1, 2, 3}), numbers<float>({1, 2, 5})),
                    test::contains("conv1d: the kernel is larger than the padded input"));
}

TEST_CASE("transposed convolutions of sizes that do not fit are refused") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 4, 7, 6}), w = numbers<float>({4, 2, 3, 3});
  const auto refused = [&](const xla::ConvTranspose2dOptions& o, const std::string& sentence) {
    CHECK_THROWS_WITH(conv_transpose2d(x, w, o), test::contains("conv_transpose2d: " + sentence));
  };
  refused({.stride = 2, .output_padding = {0, 2}},
          "output_padding 2 has to be from 0 to below the larger one of stride 2 and dilation 1");
  refused(
      {.padding = 5},
      "nothing is left of the result: stride 1 * (size 7 - 1) + dilation 1 * (kernel 3 - 1) + 1 "
      "+ output_padding 0 - 2 * padding 5 = -1");
  CHECK_THROWS_WITH(conv_transpose2d(numbers<float>({2, 3, 7, 6}), w),
                    test::contains("takes 4 channels, and the input (2, 3, 7, 6) has 3"));
  CHECK_THROWS_WITH(conv_transpose2d(numbers<float>({2, 4, 0, 6}), w),
                    test::contains("an input without elements to place: (2, 4, 0, 6)"));
  CHECK_THROWS_WITH(
      conv_transpose1d(numbers<float>({2, 3, 7}), numbers<float>({3, 2, 1}), {.groups = 2}),
      test::contains("conv_transpose1d: 3 channels cannot be divided into groups 2"));
}
