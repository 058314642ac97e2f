// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/functions.hpp"
#include "xla/loop.hpp"
#include "xla/nn/conv.hpp"
#include "xla/nn/linear.hpp"

using test::numbers;

namespace {

struct block {
  xla::nn::Conv2d<xla::nn::Conv2dConfig{.kernel_size = 3, .padding = 1}> conv{2, 2};
  xla::nn::Linear linear{6, 6};
  XLA_MODULE(conv, linear)
};

}  // namespace

TEST_CASE("carries, x and y may be transposed, broadcast, or parts") {
  auto turned = [](auto& h, auto& xs) {
    const auto body = [](const auto& c, const auto& x) {
      const auto next = transpose(c, 0, 1) + x;
      return std::pair(next, std::tuple(transpose(c, 0, 1), select(next, 1, 0),
                                        xla::expand(unsqueeze(sum(x, {0}), 0), {3, -1})));
    };
    return xla::scan(body, h, transpose(xs, 1, 2));
  };
  for (std::int64_t steps : {0, 1, 2, 5})
    test::check_modes(turned, numbers<float>({3, 3}), numbers<float>({steps, 3, 3}));
  auto shapes = [](auto& h, auto& xs) {
    const auto body = [](const auto& c, const auto& x) {
      const auto& [a, b] = c;
      const auto sums = unsqueeze(sum(a + x, {0}), 0);
      return std::pair(std::tuple(xla::expand(sums, {4, -1}), select(a, 0, 1)), b + 1);
    };
    const auto [last, ys] = xla::scan(body, std::tuple(h, select(h, 0, 0)), xs, {.reverse = true});
    return std::tuple(last, ys);
  };
  for (std::int64_t steps : {0, 1, 2, 5})
    test::check_modes(shapes, numbers<float>({4, 3}), numbers<float>({steps, 4, 3}));
}

TEST_CASE("whole numbers, truths, doubles and more carries than an op has inputs") {
  auto kinds = [](auto& n, auto& d, auto& xs) {
    const auto body = [](const auto& carry, const auto& x) {
      const auto& [whole, truth, fine, a, b, c] = carry;
      const auto odd = xla::remainder(whole, 2) == 1;
      return std::pair(
          std::tuple(whole + x, odd != truth, fine * 0.5 + xla::cast<double>(x), b, c, a + b),
          std::array{odd, truth});
    };
    const auto start = std::tuple(n, n > 2, d, n, n * 2, xla::ones_like(n));
    return xla::scan(body, start, xs);
  };
  for (std::int64_t steps : {0, 1, 2, 3, 8})
    test::check_modes(kinds, numbers<std::int64_t>({5}), numbers<double>({5}),
                      numbers<std::int64_t>({steps, 5}));
}

TEST_CASE("two equal loops, one that nobody reads, and one over what another made") {
  auto several = [](auto& h, auto& xs) {
    const auto body = [](const auto& c, const auto& x) { return std::pair(c * x + 1, c - x); };
    const auto first = xla::scan(body, h, xs);
    const auto same = xla::scan(body, h, xs);
    const auto unread = xla::scan(body, h * 2, xs);
    const auto next = xla::scan(body, first.first, same.second + xs);
    return std::tuple(next.first, next.second, same.first, unread.first * 0);
  };
  for (std::int64_t steps : {0, 1, 4})
    test::check_modes(several, numbers<float>({9}), numbers<float>({steps, 9}));
}

TEST_CASE("a cache is a carry, and a step writes its part of it") {
  auto cached = [](auto& cache, auto& xs) {
    const auto body = [&](const auto& i, const auto& c) {
      const auto x = xla::index_select(xs, 0, xla::reshape(i, {1}));
      return xla::scatter(c, 0, xla::expand(xla::reshape(i, {1, 1}), {1, 4}),
                          x + unsqueeze(sum(c, {0}), 0));
    };
    return xla::fori_loop(0, xs.size(0), body, cache);
  };
  for (std::int64_t steps : {0, 1, 6})
    test::check_modes(cached, numbers<float>({6, 4}), numbers<float>({steps, 4}));
}

TEST_CASE("layers in a body: products, convolutions, normalised rows, in autocast too") {
  auto deep = [](auto& m, auto& x, auto& xs) {
    const auto body = [&](const auto& c, const auto& add) {
      const auto image = relu(m.conv(c) + add);
      const auto rows = xla::softmax(m.linear(image), -1);
      return std::pair(rows, matmul(rows, transpose(rows, -1, -2)));
    };
    return xla::scan(body, x, xs);
  };
  for (std::int64_t steps : {1, 3})
    test::check_modes(deep, block(), numbers<float>({2, 2, 6, 6}),
                      numbers<float>({steps, 2, 2, 6, 6}));
  auto in_halves = xla::autocast(deep);
  test::check_modes(in_halves, block(), numbers<float>({2, 2, 6, 6}),
                    numbers<float>({3, 2, 2, 6, 6}));
}

TEST_CASE("every step has weights of its own") {
  auto layers = [](auto& x, auto& images, auto& weights, auto& kernels) {
    const auto body = [](const auto& c, const auto& w) {
      const auto& [weight, kernel] = w;
      const auto& [rows, image] = c;
      const auto next = relu(xla::conv2d(image, kernel, {.padding = 1}));
      return std::pair(std::tuple(tanh(matmul(rows, weight)), next),
                       matmul(rows, transpose(weight, 0, 1)));
    };
    const auto [last, ys] = xla::scan(body, std::tuple(x, images), std::tuple(weights, kernels));
    return std::tuple(last, ys);
  };
  for (std::int64_t steps : {1, 3})
    test::check_modes(layers, numbers<float>({40, 70}), numbers<float>({2, 8, 12, 12}),
                      numbers<float>({steps, 70, 70}), numbers<float>({steps, 8, 8, 3, 3}));
}

TEST_CASE("steps of many elements are divided among threads as any other") {
  auto large = [](auto& h, auto& w, auto& xs) {
    const auto body = [&](const auto& c, const auto& x) {
      const auto next = tanh(matmul(c, w)) + x;
      return std::pair(next, sum(next, {1}));
    };
    return xla::scan(body, h, xs);
  };
  test::check_modes(large, numbers<float>({300, 70}), numbers<float>({70, 70}),
                    numbers<float>({4, 300, 70}));
}

TEST_CASE("any pass may be left out of a function with loops") {
  auto nested = [](auto& xs, auto& h0, auto& w) {
    const auto outer = [&](const auto& h, const auto& rows) {
      const auto inner = [&](const auto& s, const auto& x) {
        const auto n = xla::softmax(matmul(x, w) + h + s, -1);
        return std::pair(n * 2 - n, n * n);
      };
      const auto [last, ys] = xla::scan(inner, h + 1.0f, rows);
      return std::pair(last + sum(ys, {0}), sum(ys, {0}) / (h.exp() + 1));
    };
    return xla::scan(outer, h0, xs);
  };
  const auto xs = numbers<float>({3, 4, 2, 5});
  const auto h = numbers<float>({2, 5});
  const auto w = numbers<float>({5, 5});
  test::check_modes<xla::tags::without<"share">>(nested, xs, h, w);
  test::check_modes<xla::tags::without<"simplify">>(nested, xs, h, w);
  test::check_modes<xla::tags::without<"fuse">>(nested, xs, h, w);
  test::check_modes<xla::tags::without<"rows">>(nested, xs, h, w);
  test::check_modes<xla::tags::without<"layouts">>(nested, xs, h, w);
}

TEST_CASE("state is written with what a loop made, and a loop reads what was written") {
  auto writes = [](auto& seen, auto& xs) {
    const auto body = [](const auto& c, const auto& x) { return std::pair(c + x, c); };
    seen.copy_(xla::scan(body, xla::zeros_like(seen), xs).first);
    const auto again = xla::scan(body, seen, xs);
    seen.copy_(seen + again.first);
    return again.second;
  };
  for (std::int64_t steps : {0, 1, 4})
    test::check_modes(writes, xla::Buffer<float, 1>(numbers<float>({5})),
                      numbers<float>({steps, 5}));
}
