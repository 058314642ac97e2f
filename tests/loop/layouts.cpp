// SPDX-License-Identifier: Apache-2.0
// The orders in which loops keep images: convolutions in their steps find channels innermost.
#include <string>
#include <tuple>
#include <utility>

#include "support/layouts.hpp"
#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/nn/conv.hpp"
#include "xla/xla.hpp"

using test::numbers;

namespace {

int copies_in(const std::string& graph) {
  const std::string word = "= copy(";
  int n = 0;
  for (auto at = graph.find(word); at != graph.npos; at = graph.find(word, at + 1)) ++n;
  return n;
}

/// A training step of a layer and two loops: one stacks its images, and the other slices the stack.
template <int Every>
struct images_in_loops {
  template <class W>
  constexpr auto operator()(W& stem, W& w, W& v, const xla::Tensor<float, 4>& x) const {
    xla::Tensor<float, 4> first = conv2d(x.detach(), stem, {.padding = 1});
    const auto block = [&](const xla::Tensor<float, 4>& c, auto) {
      const auto next = c + tanh(conv2d(relu(c), w, {.padding = 1})) * 0.5;
      return std::pair(next, relu(next));
    };
    const auto [last, all] =
        xla::scan(block, first, std::tuple(), {.length = 3, .checkpoint_every = Every});
    const auto add = [&](const xla::Tensor<float, 4>& c, const xla::Tensor<float, 4>& y) {
      return std::pair(c * 0.5 + conv2d(y, v), std::tuple());
    };
    const auto total = xla::scan(add, last, all, {.reverse = true}).first;
    const auto loss = xla::mean(total * total);
    loss.backward();
    w -= w.grad() * 0.1;
    return std::tuple(loss, mean(last, {2, 3}));
  }
};

/// What crosses the borders of loops in other orders: images that begin row-major, loops in loops,
/// branches, and a number of steps that the values decide.
struct mixed_orders {
  template <class W>
  constexpr auto operator()(W& w, const xla::Tensor<float, 4>& x) const {
    const auto step = [&](const auto& c) { return tanh(conv2d(c, w, {.padding = 1})); };
    const auto row_major = xla::fori_loop(
        0, 2, [&](auto, const auto& c) { return step(c); }, x);
    const auto nested = xla::fori_loop(
        0, 2,
        [&](auto, const auto& c) {
          return xla::fori_loop(
              0, 2, [&](auto, const auto& d) { return step(d) + c; }, step(c));
        },
        step(x));
    const auto chosen = xla::cond(
        mean(x) > 0, [&](const auto& c) { return step(c); },
        [&](const auto& c) { return c * 2.0f; }, nested);
    const auto until = xla::while_loop([](const auto& c) { return mean(abs(c)) > 0.01f; },
                                       [&](const auto& c) { return step(c) * 0.25f; }, chosen);
    return std::tuple(row_major, nested, chosen, until,
                      permute(xla::stack({nested, until}), {1, 0, 3, 4, 2}));
  }
};

/// Elementwise values of three and more axes in orders drawn at random.
struct random_orders {
  template <class W>
  constexpr auto operator()(W& w, const xla::Tensor<float, 3>& x) const {
    const auto step = [&](const auto& c, const auto& s) {
      const auto next = tanh(c * w + s);
      return std::pair(next * 0.5, next - sum(next, {2}, xla::keepdim));
    };
    const auto xs = xla::stack({x, x * 0.5, x + 1}) * 0.75;
    const auto [last, ys] = xla::scan(step, tanh(x) * w, xs);
    const auto [end, zs] = xla::scan(step, last + 1, ys * 2, {.reverse = true});
    sum(end * last + zs).backward();
    return std::tuple(end, zs, sum(ys, {0, 2}));
  }
};

}  // namespace

TEST_CASE("images that loops carry, stack and slice are not copied to another order") {
  const auto weight = [](std::int64_t out, std::int64_t in, std::int64_t k) {
    return test::parameter(numbers<float>({out, in, k, k}, static_cast<int>(out)) * 0.25);
  };
  auto stem = weight(6, 3, 3), w = weight(6, 6, 3), v = weight(6, 6, 1);
  const auto x = numbers<float>({2, 3, 5, 4});
  test::check_modes<xla::tags::verified>(images_in_loops<0>{}, stem, w, v, x);
  test::check_modes<xla::tags::verified>(images_in_loops<2>{}, stem, w, v, x);
  const auto graph = xla::compile(images_in_loops<0>{}).graph("layouts", stem, w, v, x);
  INFO(graph);
  CHECK(copies_in(graph) == 2);  // of x, and of what is summed whole
}

TEST_CASE("images cross the borders of loops and branches in any order") {
  const auto w = test::parameter(numbers<float>({3, 3, 3, 3}) * 0.25);
  for (const auto& size : {test::sizes_t{2, 3, 4, 5}, {1, 3, 1, 1}}) {
    const auto x = numbers<float>({size[0], size[1], size[2], size[3]});
    test::check_modes<xla::tags::verified>(mixed_orders{}, w, x);
  }
}

TEST_CASE("loops over values in orders drawn at random give the same bits") {
  const xla::eager_mode_guard eager;
  const auto w = test::parameter(numbers<float>({5}, 1));
  const auto x = numbers<float>({2, 4, 5}) * 0.25;
  test::check_modes<xla::tags::verified>(test::fixed_shuffled_program<1, random_orders>{}, w, x);
  for (unsigned seed = 0; seed < 50; ++seed) test::check_traced(random_orders{}, seed, w, x);
}
