// SPDX-License-Identifier: Apache-2.0
#pragma once

// The transforms of Winograd's algorithm along one axis, on vectors of channels. winograd.hpp and
// winograd_gradient.hpp apply them along both.

#include "xla/kernel/simd/packet.hpp"

namespace xla::kernel::detail {

/// The transforms of F(M x M, 3 x 3) along one axis, of vectors of channels that are `In` and `Out`
/// apart: y = A^T ((G g) * (B^T d)). A. Lavin, S. Gray, Fast algorithms for convolutional neural
/// networks, 2015. F(4 x 4) takes the points 0, +-sqrt(1/2), +-sqrt(2) and infinity, whose errors
/// are a quarter to a sixth of those of 0, +-1, +-2 and infinity.
template <class T, int M>
struct winograd {
  static_assert(M == 2 || M == 4);
  using vector = packet<T>;
  static constexpr int size = M + 2, positions = size * size;

  /// B^T d, size to size.
  template <int In, int Out>
  static void input(const vector* d, vector* v) {
    if constexpr (M == 2) {
      v[0] = simd::psub(d[0], d[2 * In]);
      v[Out] = simd::padd(d[In], d[2 * In]);
      v[2 * Out] = simd::psub(d[2 * In], d[In]);
      v[3 * Out] = simd::psub(d[In], d[3 * In]);
    } else {
      const vector p = more(d[4 * In], -B, d[2 * In]), q = times(a, more(d[3 * In], -B, d[In]));
      const vector r = more(d[4 * In], -A, d[2 * In]), s = times(b, more(d[3 * In], -A, d[In]));
      v[0] = more(simd::padd(d[0], d[4 * In]), -(A + B), d[2 * In]);
      v[Out] = simd::padd(p, q);
      v[2 * Out] = simd::psub(p, q);
      v[3 * Out] = simd::padd(r, s);
      v[4 * Out] = simd::psub(r, s);
      v[5 * Out] = more(simd::padd(d[In], d[5 * In]), -(A + B), d[3 * In]);
    }
  }

  /// A^T m, size to M.
  template <int In, int Out>
  static void output(const vector* m, vector* y) {
    const vector s = simd::padd(m[In], m[2 * In]), t = simd::psub(m[In], m[2 * In]);
    if constexpr (M == 2) {
      y[0] = simd::padd(m[0], s);
      y[Out] = simd::psub(t, m[3 * In]);
    } else {
      const vector u = simd::padd(m[3 * In], m[4 * In]), v = simd::psub(m[3 * In], m[4 * In]);
      y[0] = simd::padd(simd::padd(m[0], s), u);
      y[Out] = more(times(a, t), b, v);
      y[2 * Out] = more(times(A, s), B, u);
      y[3 * Out] = more(more(m[5 * In], a * A, t), b * B, v);
    }
  }

  /// A y, M to size: the result's gradient.
  template <int In, int Out>
  static void output_gradient(const vector* y, vector* m) {
    m[0] = y[0];
    if constexpr (M == 2) {
      m[Out] = simd::padd(y[0], y[In]);
      m[2 * Out] = simd::psub(y[0], y[In]);
      m[3 * Out] = simd::pnegate(y[In]);
    } else {
      const vector p = more(y[0], A, y[2 * In]), q = more(times(a, y[In]), a * A, y[3 * In]);
      const vector r = more(y[0], B, y[2 * In]), s = more(times(b, y[In]), b * B, y[3 * In]);
      m[Out] = simd::padd(p, q);
      m[2 * Out] = simd::psub(p, q);
      m[3 * Out] = simd::padd(r, s);
      m[4 * Out] = simd::psub(r, s);
      m[5 * Out] = y[3 * In];
    }
  }

  /// G g, 3 to size.
  template <int In, int Out>
  static void weight(const vector* g, vector* u) {
    u[0] = g[0];
    if constexpr (M == 2) {
      const vector s = times(0.5, simd::padd(g[0], g[2 * In])), t = times(0.5, g[In]);
      u[Out] = simd::padd(s, t);
      u[2 * Out] = simd::psub(s, t);
      u[3 * Out] = g[2 * In];
    } else {
      const vector s = more(times(ca, g[0]), ca * A, g[2 * In]), t = times(ca * a, g[In]);
      const vector v = more(times(cb, g[0]), cb * B, g[2 * In]), w = times(cb * b, g[In]);
      u[Out] = simd::padd(s, t);
      u[2 * Out] = simd::psub(s, t);
      u[3 * Out] = simd::padd(v, w);
      u[4 * Out] = simd::psub(v, w);
      u[5 * Out] = g[2 * In];
    }
  }

  /// G^T u, size to 3: the weight's gradient.
  template <int In, int Out>
  static void weight_gradient(const vector* u, vector* g) {
    const vector s = simd::padd(u[In], u[2 * In]), t = simd::psub(u[In], u[2 * In]);
    if constexpr (M == 2) {
      const vector half = times(0.5, s);
      g[0] = simd::padd(u[0], half);
      g[Out] = times(0.5, t);
      g[2 * Out] = simd::padd(half, u[3 * In]);
    } else {
      const vector v = simd::padd(u[3 * In], u[4 * In]), w = simd::psub(u[3 * In], u[4 * In]);
      g[0] = more(more(u[0], ca, s), cb, v);
      g[Out] = more(times(a * ca, t), b * cb, w);
      g[2 * Out] = more(more(u[5 * In], A * ca, s), B * cb, v);
    }
  }

 private:
  static constexpr double a = 0.70710678118654752440, b = 2 * a, A = 0.5, B = 2;
  static constexpr double ca = 1 / (2 * A * (A - B)), cb = 1 / (2 * B * (B - A));
  static_assert(A * B == 1);

  static vector times(double c, const vector& x) {
    return simd::pmul(simd::pset1<vector>(static_cast<T>(c)), x);
  }
  /// x + c y
  static vector more(const vector& x, double c, const vector& y) {
    return simd::pmadd(simd::pset1<vector>(static_cast<T>(c)), y, x);
  }
};

}  // namespace xla::kernel::detail
