// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/xla.hpp"

namespace test {

/// A loop whose body is drawn at random, with a loop in it, and its gradients. All matrices are
/// (n, n); xs are some of them.
struct random_loop {
  using Matrix = xla::Tensor<float, 2>;
  unsigned seed = 0;
  int length = 0;

  constexpr auto operator()(auto& v, auto& w, auto& xs) const {
    v.zero_grad();  // so that gradients of -0 stay what they are
    w.zero_grad();
    xs.zero_grad();
    unsigned state = seed * 2654435761u + 54321u;
    const bool reverse = draw(state, 2) == 0, other = draw(state, 2) == 0;
    const Matrix around = tanh(w * 2.0f);
    // The same whenever it is called: a checkpoint may do so in backward.
    const auto body = [&, drawn = state](const auto& carry, const auto& x) {
      unsigned own = drawn;
      Matrix h[4] = {std::get<0>(carry), std::get<1>(carry), x, other ? around : Matrix(v)};
      for (int i = 0; i < length; ++i) {
        const int op = draw(own, 16), a = draw(own, 4), b = draw(own, 5), to = draw(own, 3);
        h[to] = tanh(of(op, h[a], b == 4 ? Matrix(w) : h[b], h[3]));
      }
      return std::pair(std::tuple(h[0], h[1]), std::tuple(h[2], sum(h[draw(own, 3)], {1})));
    };
    const Matrix first = draw(state, 2) == 0 ? Matrix(v) : xla::ones_like(w);
    // What backward keeps: of seeds in turn all, carries before every 1, 2 or 3 steps, what is
    // around checkpoints in the body, and around one of the loop.
    const int policy = static_cast<int>(seed % 6);
    const auto again = [&](const auto& c, const auto& x) { return xla::checkpoint(body, c, x); };
    const auto loop = [&](const auto& c) {
      if (policy == 4) return xla::scan(again, c, xs, {.reverse = reverse});
      return xla::scan(body, c, xs,
                       {.reverse = reverse, .checkpoint_every = policy < 4 ? policy : 0});
    };
    const auto init = std::tuple(first, around);
    const auto [last, ys] = policy == 5 ? xla::checkpoint(loop, init) : loop(init);
    const auto& [a, b] = last;
    const auto loss = (draw(state, 2) == 0 ? sum(a * w) : sum(b)) + sum(std::get<0>(ys) * xs) +
                      sum(std::get<1>(ys) * 0.5f);
    loss.backward();
    return std::tuple(loss, a, b, std::get<0>(ys), std::get<1>(ys));
  }

 private:
  static constexpr int draw(unsigned& state, int n) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>((state >> 16) % static_cast<unsigned>(n));
  }
  static constexpr Matrix of(int op, const Matrix& a, const Matrix& b, const Matrix& outer) {
    if (op == 0) return (a + b) * 0.5f;
    if (op == 1) return a - b * 0.25f;
    if (op == 2) return a * b;
    if (op == 3) return where(a > b, a, b * 0.5f);
    if (op == 4) return relu(a) - relu(b - 0.5f);
    if (op == 5) return a - mean(a, {1}, xla::keepdim) * b;
    if (op == 6) return a - max(b, {0}, xla::keepdim) * 0.5f;
    if (op == 7) return softmax(a) + b;
    if (op == 8) return matmul(a, b) * 0.25f;
    if (op == 9) return transpose(a) + matmul(b, transpose(outer)) * 0.25f;
    if (op == 10) return maximum(b, a) * xla::cast<float>(a > 0);
    if (op == 11) return expand(sum(a * 0.125f, {1}, xla::keepdim), {-1, a.size(1)}) * b;
    const auto row = [&](const auto& s, const auto& x) {
      const auto next = tanh(s * x + sum(b * outer, {0}));
      return std::pair(next, next - x);
    };
    if (op == 12) return xla::scan(row, mean(a, {0}), b).second * a;
    if (op == 14)
      return xla::cond(
          sum(a) > sum(b), [&] { return tanh(a * outer) + xla::scan(row, mean(b, {0}), a).second; },
          [&] { return matmul(b, outer) * 0.25f - a; });
    if (op == 15)  // which has no gradient
      return b * xla::while_loop([](const auto& c) { return sum(c * c) > 0.5f; },
                                 [](const auto& c) { return tanh(c * 0.5f) - c * 0.125f; },
                                 (a * outer).detach());
    const auto again = [&](const auto& i, const auto& c) {
      return tanh(matmul(c, outer) * 0.25f + b * xla::cast<float>(i));
    };
    return xla::fori_loop(1, 4, again, a);
  }
};

template <unsigned Seed, int Length>
struct fixed_loop {
  constexpr auto operator()(auto& v, auto& w, auto& xs) const {
    return random_loop{Seed, Length}(v, w, xs);
  }
};

struct loop_arguments {
  xla::Parameter<float, 2> v, w;
  xla::Parameter<float, 3> xs;
  loop_arguments(std::int64_t n, std::int64_t steps)
      : v(parameter(numbers<float>({n, n}, 1) * 0.25f)),
        w(parameter(numbers<float>({n, n}, 2) * 0.25f)),
        xs(parameter(numbers<float>({steps, n, n}, 3) * 0.5f)) {}
};

}  // namespace test
