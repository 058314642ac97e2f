// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/xla.hpp"

namespace test {

/// A program of nested loops, branches and checkpoints, drawn at random, and its gradients. A block
/// is a sequence of statements on three (n, n) matrices and a stack of them. At least one statement
/// contains another block, until `depth` is reached. The function recurses at run time, not by
/// templates, so that a program of any depth compiles one loop of each kind. Elements are double,
/// so that second derivatives can be compared, which modes may sum in different orders.
struct random_nest {
  using Matrix = xla::Tensor<double, 2>;
  using Stack = xla::Tensor<double, 3>;
  using Weight = xla::Parameter<double, 2>;
  using Weights = xla::Parameter<double, 3>;

  unsigned seed = 0;
  int length = 3;       ///< statements in a block
  int depth = 2;        ///< blocks in blocks
  bool smooth = false;  ///< no kinks and no detach(), so that finite differences give the gradients
  /// Loops unroll several steps, so that gradients are summed in other orders.
  bool unroll = false;
  /// A bit for each statement to leave out, to find the one that matters.
  std::uint64_t left_out = 0;

  /// A number, the loss, and the results from which it is computed.
  constexpr auto forward(Weight& v, Weight& w, Weights& xs) const {
    unsigned state = seed * 2654435761u + 99991u;
    const outer e{v, w, xs};
    values now{{tanh(w * 2.0), Matrix(v), xla::ones_like(w)}, Stack(xs)};
    block(now, next(state), depth, e);
    const auto loss = sum(now.h[0] * w) + sum(now.h[1] * now.h[2]) + sum(now.s * 0.5) +
                      sum(v * w) * 0.25 + sum(xs * xs) * 0.125;
    return std::tuple(loss, now.h[0], now.h[1], now.h[2], now.s);
  }
  constexpr auto operator()(Weight& v, Weight& w, Weights& xs) const {
    v.zero_grad();  // so that gradients of -0 stay what they are
    w.zero_grad();
    xs.zero_grad();
    const auto made = forward(v, w, xs);
    std::get<0>(made).backward();
    return made;
  }
  /// Second derivatives: the gradients of a number computed from first gradients.
  constexpr auto twice(Weight& v, Weight& w, Weights& xs) const {
    const auto loss = std::get<0>(forward(v, w, xs));
    const auto first = xla::grad(loss, std::tie(v, w, xs), {.create_graph = true});
    const auto& [gv, gw, gx] = first;
    (sum(gv * gv) + sum(gw * gw) * 0.5 + sum(gx * gx)).backward();
    return std::tuple(loss, gv, gw, gx);
  }

 private:
  using Carry = std::tuple<Matrix, Matrix>;
  struct outer {
    Weight& v;
    Weight& w;
    Weights& xs;
  };
  struct values {
    Matrix h[3];
    Stack s;
  };

  static constexpr unsigned next(unsigned& state) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
  }
  static constexpr int draw(unsigned& state, int n) {
    return static_cast<int>((next(state) >> 8) % static_cast<unsigned>(n));
  }

  /// It must do the same whenever it is called, because a checkpoint may call it again in backward.
  constexpr void block(values& now, unsigned state, int levels, const outer& e) const {
    const int nested = draw(state, length);  // one at least
    for (int i = 0; i < length; ++i) {
      const unsigned own = next(state);
      const int a = draw(state, 3), b = draw(state, 3), to = draw(state, 3);
      const bool in = draw(state, 4) == 0;
      if (left_out >> (own % 64) & 1) continue;
      if (levels > 0 && (in || i == nested)) now.h[to] = tanh(inner(now, own, a, b, levels, e));
      else now.h[to] = tanh(plain(now, own, a, b, e));
    }
  }

  constexpr Matrix plain(const values& now, unsigned state, int i, int k, const outer& e) const {
    const Matrix& a = now.h[i];
    const Matrix& b = now.h[k];
    const int op = draw(state, smooth ? 9 : 14), of = draw(state, 3);
    const Matrix w = of == 0 ? Matrix(e.w) : of == 1 ? Matrix(e.v) : b;
    if (op == 0) return (a + w) * 0.5;
    if (op == 1) return a * w;
    if (op == 2) return matmul(a, w) * 0.25 + b;
    if (op == 3) return transpose(a) - matmul(b, transpose(w)) * 0.25;
    if (op == 4) return a - mean(b, {1}, xla::keepdim) * w;
    if (op == 5) return softmax(a) + sum(now.s * 0.125, {0}) * w;
    if (op == 6) return expand(sum(a * 0.125, {1}, xla::keepdim), {-1, a.size(1)}) * w;
    if (op == 7) return multiplied(a, w) - b;
    if (op == 8) return sigmoid(a) * (w - b);
    if (op == 9) return (a * w).detach() - b;
    if (op == 10) return where(a > w, a, b * 0.5);
    if (op == 11) return relu(a) - relu(w - 0.25) + b;
    if (op == 12) return a - max(w, {0}, xla::keepdim) * 0.5;
    return maximum(b, w) * xla::cast<double>(a > 0);
  }
  /// a b as a function with its own gradient.
  static constexpr Matrix multiplied(const Matrix& x, const Matrix& y) {
    const auto f = xla::custom_gradient(
        [](const Matrix& a, const Matrix& b) { return xla::save_for_backward(a * b, a, b); },
        [](const auto& saved, const auto& g) {
          return std::tuple(g * std::get<1>(saved), g * std::get<0>(saved));
        });
    return f(x, y);
  }

  /// A statement that contains a block.
  constexpr Matrix inner(values& now, unsigned state, int i, int k, int levels,
                         const outer& e) const {
    const Matrix& a = now.h[i];
    const Matrix& b = now.h[k];
    const int kind = draw(state, smooth ? 10 : 11);
    if (kind < 4) return scanned(now, state, a, b, levels - 1, e);
    if (kind < 6) return counted(now, state, a, levels - 1, e);
    if (kind == 6) return chosen(now, state, a, b, levels - 1, e);
    if (kind == 7) return again(now, state, a, b, levels - 1, e);
    if (kind == 8) return accumulated(state, a, b);
    if (kind == 9) return rows(state, a, b, now.h[2]);
    return repeated(now, state, a, levels - 1, e).detach();  // which has no gradient
  }

  /// The value that a step passes on: its result, the result without gradient, or its input.
  constexpr Matrix handed_on(int how, const Matrix& made, const Carry& carry, const Matrix& x,
                             int which) const {
    const auto& [first, second] = carry;
    if (how == 0) return which == 0 ? first : second;
    if (how == 1) return which == 0 ? second : first;
    if (how == 2) return x;
    if (how == 3 && !smooth) return made.detach();
    return made;
  }
  constexpr Matrix first_carry(int how, const Matrix& a, const outer& e) const {
    if (how == 0) return Matrix(e.v);
    if (how == 1) return xla::ones_like(e.w);
    if (how == 2 && !smooth) return a.detach();
    if (how == 3) return tanh(e.w * 1.5);
    return a;
  }
  static constexpr Stack slices(int how, const values& now, const Matrix& a, const Matrix& b,
                                const outer& e) {
    if (how == 0) return now.s;
    if (how == 1) return now.s * xla::unsqueeze(a, 0);
    if (how == 2) return xla::unsqueeze(a, 0);
    if (how == 3) return xla::cat({xla::unsqueeze(a, 0), xla::unsqueeze(b * 0.5, 0)}, 0);
    return Stack(e.xs);
  }
  static constexpr Matrix used_of(int how, const Carry& last, const Stack& ys, const Matrix& a) {
    const auto& [first, second] = last;
    if (how == 0) return first * a;
    if (how == 1) return second + a * 0.25;
    if (how == 2) return sum(ys * 0.5, {0});
    return first - second * 0.5 + sum(ys * xla::unsqueeze(a, 0), {0});
  }

  constexpr Matrix scanned(values& now, unsigned state, const Matrix& a, const Matrix& b,
                           int levels, const outer& e) const {
    const unsigned own = next(state);
    const int to_first = draw(state, 7), to_second = draw(state, 7), out = draw(state, 4);
    const auto body = [&](const Carry& carry, const Matrix& x) {
      values in{{std::get<0>(carry), std::get<1>(carry), x}, now.s};
      block(in, own, levels, e);
      const Matrix p = handed_on(to_first, in.h[0], carry, x, 0);
      const Matrix q = handed_on(to_second, in.h[1], carry, x, 1);
      const Matrix y = out == 0 ? in.h[2] : out == 1 ? p : out == 2 ? q * x : in.h[1];
      return std::pair(Carry(p, q), y);
    };
    const int from = draw(state, 6), from_second = draw(state, 6);
    const Carry init(first_carry(from, a, e), first_carry(from_second, b, e));
    const Stack over = slices(draw(state, 7), now, a, b, e);
    const int every = draw(state, 6), turn = draw(state, 3);
    const bool reverse = draw(state, 2) == 0, around = draw(state, 6) == 0;
    const auto loop = [&](const Carry& first) {
      return xla::scan(body, first, over,
                       {.reverse = reverse,
                        .checkpoint_every = every < 4 ? every : 0,
                        .unroll = unroll ? 1 + turn : 1});
    };
    const auto made = around ? xla::checkpoint(loop, init) : loop(init);
    const Matrix result = used_of(draw(state, 4), made.first, made.second, a);
    if (draw(state, 3) == 0) now.s = made.second;
    return result;
  }

  constexpr Matrix counted(const values& now, unsigned state, const Matrix& a, int levels,
                           const outer& e) const {
    const unsigned own = next(state);
    const int how = draw(state, 6), trip = draw(state, 5), every = draw(state, 4);
    const int turn = draw(state, 3);
    const auto body = [&](const auto& i, const Matrix& c) {
      values in{{c, a + xla::cast<double>(i) * 0.125, c * 0.5}, now.s};
      block(in, own, levels, e);
      return handed_on(how, in.h[0], Carry(c, in.h[1]), in.h[2], 0);
    };
    const Matrix init = first_carry(draw(state, 6), a, e);
    const xla::Size to = trip < 4 ? xla::Size(trip) : e.xs.size(0);
    return xla::fori_loop(0, to, body, init,
                          {.checkpoint_every = every, .unroll = unroll ? 1 + turn : 1});
  }

  constexpr Matrix chosen(const values& now, unsigned state, const Matrix& a, const Matrix& b,
                          int levels, const outer& e) const {
    const unsigned own = next(state), other = next(state);
    const int from = draw(state, 3), result = draw(state, 3);
    const auto branch = [&](unsigned s, const Matrix& x) {
      values in{{x, b, a * 0.5}, now.s};
      block(in, s, levels, e);
      return in.h[from];
    };
    return xla::cond(
        sum(a) > sum(b) * 0.5, [&] { return branch(own, a); },
        [&] { return result == 0 ? b * 0.5 : branch(other, b); });
  }

  constexpr Matrix again(const values& now, unsigned state, const Matrix& a, const Matrix& b,
                         int levels, const outer& e) const {
    const unsigned own = next(state);
    const int kind = draw(state, 2);
    const auto f = [&](const Matrix& x, const Matrix& y) {
      values in{{x, y, a * 0.5}, now.s};
      block(in, own, levels, e);
      return Carry(in.h[0], kind == 0 ? in.h[1] : in.h[2]);
    };
    const auto made = xla::checkpoint(f, a, b);
    return std::get<0>(made) - std::get<1>(made) * b;
  }

  static constexpr Matrix accumulated(unsigned state, const Matrix& a, const Matrix& b) {
    const int axis = draw(state, 2);
    const bool reverse = draw(state, 2) == 0, first = draw(state, 3) == 0;
    const auto combine = [](const auto& l, const auto& r) {
      return std::tuple(std::get<0>(l) * std::get<0>(r),
                        std::get<0>(r) * std::get<1>(l) + std::get<1>(r));
    };
    const auto made =
        xla::associative_scan(combine, std::tuple(tanh(a), b), {.axis = axis, .reverse = reverse});
    return first ? std::get<0>(made) - a : std::get<1>(made) * 0.5;
  }
  static constexpr Matrix rows(unsigned state, const Matrix& a, const Matrix& b, const Matrix& c) {
    const bool reverse = draw(state, 2) == 0;
    const auto row = [&](const auto& s, const auto& x) {
      const auto made = tanh(s * x + sum(b * c, {0}));
      return std::pair(made, made - x);
    };
    return xla::scan(row, mean(a, {0}), b, {.reverse = reverse}).second * a;
  }
  constexpr Matrix repeated(const values& now, unsigned state, const Matrix& a, int levels,
                            const outer& e) const {
    const unsigned own = next(state);
    const auto body = [&](const auto& c) {
      values in{{c.first, a, c.first * 0.5}, now.s};
      block(in, own, levels, e);
      return std::pair(in.h[0], c.second + 1);
    };
    return xla::while_loop([](const auto& c) { return c.second + tanh(sum(c.first)) < 2.5; }, body,
                           std::pair(a, xla::zeros_like(sum(a))))
        .first;
  }
};

struct nest_arguments {
  random_nest::Weight v, w;
  random_nest::Weights xs;
  nest_arguments(std::int64_t n, std::int64_t steps)
      : v(parameter(numbers<double>({n, n}, 1) * 0.25)),
        w(parameter(numbers<double>({n, n}, 2) * 0.25)),
        xs(parameter(numbers<double>({steps, n, n}, 3) * 0.5)) {}
};

}  // namespace test
