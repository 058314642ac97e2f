// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "xla/xla.hpp"

namespace test {

/// A step function drawn at random: what it does depends on its members alone, so that the compiler
/// captures the same program as run time runs. All tensors are (n, n).
struct random_program {
  using Matrix = xla::Tensor<float, 2>;
  using Weight = xla::Parameter<float, 2>;

  unsigned seed = 0;
  int length = 0;
  std::uint64_t left_out =
      0;  ///< bits of statements to leave out, for finding the one that matters

  constexpr auto operator()(Weight& v, Weight& w, Matrix& x, Matrix& y) const {
    unsigned state = seed * 2654435761u + 12345u;
    Matrix h[4] = {x, y, v.detach(), tanh(w)};
    for (int i = 0; i < length; ++i) {
      const int op = draw(state, 56), a = draw(state, 4), b = draw(state, 4), to = draw(state, 4);
      if (i < 64 && (left_out >> i & 1)) continue;
      if (op < 14) h[to] = pure(op, h[a], h[b]);
      else if (op >= 32) h[to] = wide(op, h[a], h[b]);
      else effect(op, h[a], h[b], h[to], a < 2 ? v : w, a < 2 ? w : v, x);
    }
    auto loss = sum(h[0] * h[1] + h[2] - h[3]);
    return std::tuple(h[0], h[1], h[2], h[3], loss);
  }

 private:
  static constexpr int draw(unsigned& state, int n) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>((state >> 16) % static_cast<unsigned>(n));
  }
  static constexpr Matrix pure(int op, const Matrix& a, const Matrix& b) {
    if (op == 0) return (a + b) * 0.5;
    if (op == 1) return a - b * 0.25;
    if (op == 2) return tanh(a * b);
    if (op == 3) return where(a > b, a, b * 0.5);
    if (op == 4) return relu(a) - relu(b - 1);
    if (op == 5) return exp(tanh(a) - 1);
    if (op == 6) return a - mean(a, {1}, xla::keepdim);
    if (op == 7) return a - max(a, {0}, xla::keepdim) * 0.5;
    if (op == 8) return softmax(a) + log_softmax(tanh(b)) * 0.1;
    if (op == 9) return matmul(tanh(a), tanh(b)) * 0.125;
    if (op == 10) return transpose(a) + transpose(matmul(a, transpose(b))) * 0.01;
    if (op == 11) return reshape(flatten(a) + 0.5, {a.size(0), -1});
    if (op == 12) return maximum(b, a) - minimum(a, b) * xla::cast<float>(a > 0);
    return expand(sum(a * 0.125, {1}, xla::keepdim), {-1, a.size(1)});
  }
  // One op of each family of the catalogue.
  static constexpr Matrix wide(int op, const Matrix& a, const Matrix& b) {
    if (op < 44) return wide_map(op, a, b);
    if (op == 44) return cumsum(a, 0) * 0.25;
    if (op == 45) return sort(a, 1).first - b * 0.25;
    if (op == 46) return gather(a, 0, argsort(b, 0));
    if (op == 47) return roll(a, 1, 0) + flip(b, {1}) * 0.5;
    if (op == 48) return tril(a) - triu(b, 1) * 0.5;
    if (op == 49)
      return narrow(pad(a, {{1, 0}, {0, 1}}, 0.5), 1, 0, a.size(1)).index(xla::Slice(1)) + b * 0.25;
    if (op == 50) return a - logsumexp(b, {1}, xla::keepdim) * 0.25;
    if (op == 51) return a / (xla::std(a, {0}, xla::keepdim, xla::correction(0)) + 1);
    if (op == 52) return b - norm(a * 0.5, {1}, xla::keepdim) * 0.25;
    if (op == 53) return xla::einsum<"ij,kj->ki">(tanh(a), tanh(b)) * 0.125;
    if (op == 54) return layer_norm(a) * 0.5 + rms_norm(b) * 0.25;
    return tanh(prod(tanh(a) + 0.5, {1}, xla::keepdim)) * b;
  }
  static constexpr Matrix wide_map(int op, const Matrix& a, const Matrix& b) {
    if (op == 32) return gelu(a) + sigmoid(b) * 0.5;
    if (op == 33) return sin(a) - cos(b) * 0.25;
    if (op == 34) return softplus(a) - 0.5;
    if (op == 35) return clip(a, -1, 1) + sign(b) * 0.25;
    if (op == 36) return erf(a * b) + floor(b) * 0.125;
    if (op == 37) return log1p(abs(a)) - expm1(tanh(b)) * 0.25;
    if (op == 38) return square(tanh(a)) + pow(sigmoid(b), 1.5);
    if (op == 39) return silu(a) - leaky_relu(b, 0.1) * 0.5;
    if (op == 40) return lerp(a, b, 0.25);
    if (op == 41) return remainder(a, 1.5) + round(b) * 0.0625;
    if (op == 42) return where(isfinite(a) && !(a > 2), a, b * 0.25);
    return sqrt(abs(a) + 0.25) * rsqrt(square(b) + 1);
  }
  static constexpr void effect(int op, Matrix& a, Matrix& b, Matrix& to, Weight& p, Weight& q,
                               Matrix& x) {
    if (op == 14) p += tanh(a) * 0.25;
    else if (op == 15) to = p.detach();
    else if (op == 16) exchange(p, q);
    else if (op == 17) to *= tanh(b) + 0.5;
    else if (op == 18) to[0] = b[0] * 2;
    else if (op == 19) backward(p, q, a);
    else if (op == 20) p.zero_grad();
    else if (op == 21) add_gradient(to, p);
    else if (op == 22) to = rand_like(a) - b * 0.5;
    else if (op == 23) to = tanh(p) * q + sum(a) * 0.001;
    else if (op == 24) p.copy_(tanh(q.detach() - p.detach()));
    else if (op == 25) x += to * 0.5;
    else part(op, a, b, to, p, q);
  }
  // Parts that are written in place, also from the tensor that they are in.
  static constexpr void part(int op, const Matrix& a, const Matrix& b, Matrix& to, Weight& p,
                             Weight& q) {
    using xla::none, xla::Slice;
    if (op == 26) p[0] = tanh(a[-1]) * 0.5;
    else if (op == 27) to.index(Slice(1)) += b.index(Slice(none, -1)) * 0.5;
    else if (op == 28) q.index(Slice(none, none, -1), 0) = p.detach().index(Slice(), -1);
    else if (op == 29) to = xla::cat({slice(a, 1, 1), slice(b, 1, 0, 1)}, 1);
    else if (op == 30) p.index(Slice(), Slice(none, none, 2)) *= 0.5;
    else to[0] = to[-1] + q[0] * p[-1];
  }
  static constexpr void exchange(Weight& p, Weight& q) {
    const auto held = p.detach();
    p.copy_(q.detach());
    q.copy_(held);
  }
  static constexpr void backward(Weight& p, Weight& q, const Matrix& a) {
    const auto mixed = tanh(p) * a.detach() + matmul(q, p * 0.1) * 0.1;
    const auto parts = slice(p, 0, 1) * slice(p, 0, xla::none, -1) + q[0];
    (sum(mixed * mixed) * 0.1 + sum(max(q, {1})) + sum(parts) * 0.1).backward();
  }
  static constexpr void add_gradient(Matrix& to, const Weight& p) {
    const auto g = p.grad();
    if (g.defined()) to = to + tanh(g) * 0.5;
  }
};

/// The same with rows: (n, m) matrices, columns (n, 1) and rows (1, m) that broadcast against them.
template <class T>
struct random_row_program {
  using Matrix = xla::Tensor<T, 2>;

  unsigned seed = 0;
  int length = 0;
  std::uint64_t left_out = 0;

  constexpr auto operator()(Matrix& x, Matrix& y) const {
    unsigned state = seed * 2654435761u + 777u;
    Matrix h[3] = {x, y, x * 0.5};
    Matrix c[2] = {mean(x, {1}, xla::keepdim), max(y, {1}, xla::keepdim)};
    Matrix r[2] = {mean(x, {0}, xla::keepdim), max(y, {0}, xla::keepdim)};
    for (int i = 0; i < length; ++i) {
      const int op = draw(state, 24), a = draw(state, 3), b = draw(state, 3), to = draw(state, 3);
      const int k = draw(state, 2), l = draw(state, 2);
      if (i < 64 && (left_out >> i & 1)) continue;
      if (op < 10) h[to] = matrix(op, h[a], h[b], c[k], r[l]);
      else if (op > 18) h[to] = each(op, h[a], h[b], c[k], r[l]);
      else if (op < 15) c[k] = column(op, h[a], h[b], c[k], c[l]);
      else r[k] = row(op, h[a], c[l], r[k], r[l]);
    }
    return std::tuple(h[0], h[1], h[2], c[0], c[1], r[0], r[1]);
  }

 private:
  static constexpr int draw(unsigned& state, int n) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>((state >> 16) % static_cast<unsigned>(n));
  }
  static constexpr Matrix matrix(int op, const Matrix& a, const Matrix& b, const Matrix& c,
                                 const Matrix& r) {
    if (op == 0) return tanh(a * c + b);
    if (op == 1) return where(a > c, r, b);
    if (op == 2) return expand(c, {a.size(0), a.size(1)}) + r;
    if (op == 3) return exp(tanh(c + r));
    if (op == 4) return softmax(a) + log_softmax(tanh(b), 0) * 0.5;
    if (op == 5) return a / (sum(abs(b), {1}, xla::keepdim) + 1);
    if (op == 6) return normalized(a);
    if (op == 7) return xla::cast<T>(a == max(a, {1}, xla::keepdim)) + b * 0.5;
    if (op == 8) return tanh(a) * sum(b * 0.01) + max(b) * 0.1;
    return expand(tanh(c), {-1, a.size(1)}) - minimum(a, c);
  }
  static constexpr Matrix each(int op, const Matrix& a, const Matrix& b, const Matrix& c,
                               const Matrix& r) {
    if (op == 19) return clamp(a, c, r) + sign(b);
    if (op == 20) return gelu(a) * sigmoid(c) + softplus(b) * 0.25;
    if (op == 21) return floor(b * 2) % 1.5 + round(c) * fmod(a, 2);
    if (op == 22) return pow(abs(tanh(a)), 1.5) + expm1(tanh(b)) * log1p(abs(r));
    return where(isfinite(a) != (c > 0), sin(a), cos(r));
  }
  static constexpr Matrix normalized(const Matrix& a) {
    const auto d = a - mean(a, {1}, xla::keepdim);
    return d * rsqrt(mean(d * d, {1}, xla::keepdim) + 0.01);
  }
  static constexpr Matrix column(int op, const Matrix& a, const Matrix& b, const Matrix& c,
                                 const Matrix& d) {
    if (op == 10) return sum(a * 0.125, {1}, xla::keepdim);
    if (op == 11) return max(a - b, {-1}, xla::keepdim);
    if (op == 12) return tanh(c + d * 0.5) + 1;
    if (op == 13) return xla::cast<T>(c > d) * 0.5 + mean(a * b, {1}, xla::keepdim);
    return c * 0.5 - min(tanh(a), {1}, xla::keepdim);
  }
  static constexpr Matrix row(int op, const Matrix& a, const Matrix& c, const Matrix& r,
                              const Matrix& q) {
    if (op == 15) return sum(a * 0.125, {0}, xla::keepdim);
    if (op == 16) return min(a + c, {0}, xla::keepdim);
    if (op == 17) return relu(r - q * 0.5);
    return tanh(r) * max(q, {1}, xla::keepdim);
  }
};

/// The same as functions without data, which can be compiled.
template <unsigned Seed, int Length>
struct fixed_program {
  constexpr auto operator()(auto& v, auto& w, auto& x, auto& y) const {
    return random_program{Seed, Length}(v, w, x, y);
  }
};

template <class T, unsigned Seed, int Length>
struct fixed_row_program {
  constexpr auto operator()(auto& x, auto& y) const {
    return random_row_program<T>{Seed, Length}(x, y);
  }
};

}  // namespace test
