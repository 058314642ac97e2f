// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include <xla/xla.hpp>

// Row functions as an expert would write them by hand: several passes over a row that stays in the
// L1 cache, sums in four independent chains, tails in masked packets, and the library's exp. They
// are what generated kernels are measured against.
namespace bench::rows {

namespace simd = Eigen::internal;
using packet = xla::kernel::packet<float>;
using V = xla::kernel::vec<float>;
inline constexpr std::int64_t lanes = xla::kernel::lanes<float>;

inline packet load(const float* p, std::int64_t n) {
  return n >= lanes ? simd::ploadu<packet>(p) : xla::kernel::load_part<float>(p, n);
}
inline void store(float* p, packet x, std::int64_t n) {
  if (n >= lanes) simd::pstoreu(p, x);
  else xla::kernel::store_part<float>(p, x, n);
}
inline packet splat(float x) { return simd::pset1<packet>(x); }

/// Calls f(k, elements, chain) for the packets of a row: k is the first element, chain the one of
/// the four partial sums to add to.
template <class F>
[[gnu::always_inline]] inline void each(std::int64_t n, F&& f) {
  std::int64_t k = 0;
  for (; k + 4 * lanes <= n; k += 4 * lanes) {
    f(k, lanes, 0);
    f(k + lanes, lanes, 1);
    f(k + 2 * lanes, lanes, 2);
    f(k + 3 * lanes, lanes, 3);
  }
  for (; k + lanes <= n; k += lanes) f(k, lanes, 0);
  if (k < n) f(k, n - k, 0);
}

struct chains {
  packet p[4];
  explicit chains(float x) : p{splat(x), splat(x), splat(x), splat(x)} {}
  void add(int i, packet x, std::int64_t n) {
    if (n < lanes) x = xla::kernel::replace_rest<float>(x, 0, n);
    p[i] = simd::padd(p[i], x);
  }
  void most(int i, packet x, std::int64_t n) {
    if (n < lanes) x = xla::kernel::replace_rest<float>(x, -3e38f, n);
    p[i] = simd::pmax(p[i], x);
  }
  float sum() const {
    return simd::predux(simd::padd(simd::padd(p[0], p[1]), simd::padd(p[2], p[3])));
  }
  float max() const {
    return simd::predux_max(simd::pmax(simd::pmax(p[0], p[1]), simd::pmax(p[2], p[3])));
  }
};

inline float max_of(const float* x, std::int64_t n) {
  chains top(-3e38f);
  each(n, [&](std::int64_t k, std::int64_t m, int c) { top.most(c, load(x + k, m), m); });
  return top.max();
}
/// exp(x - max) of one row into e, which has room for whole packets; returns its sum.
inline float exp_of(const float* x, float* e, std::int64_t n, float max) {
  const packet top = splat(max);
  chains sum(0);
  each(n, [&](std::int64_t k, std::int64_t m, int c) {
    const packet y = V{simd::psub(load(x + k, m), top)}.exp().v;
    simd::pstoreu(e + k, y);
    sum.add(c, y, m);
  });
  return sum.sum();
}

[[gnu::noinline]] inline void exp(std::int64_t n, const float* x, float* out) {
  each(n,
       [&](std::int64_t k, std::int64_t m, int) { store(out + k, V{load(x + k, m)}.exp().v, m); });
}

[[gnu::noinline]] inline void softmax(std::int64_t rows, std::int64_t n, const float* x, float* out,
                                      float* e) {
  for (std::int64_t i = 0; i < rows; ++i, x += n, out += n) {
    const packet scale = splat(1 / exp_of(x, e, n, max_of(x, n)));
    each(n, [&](std::int64_t k, std::int64_t m, int) {
      store(out + k, simd::pmul(simd::ploadu<packet>(e + k), scale), m);
    });
  }
}

[[gnu::noinline]] inline void log_softmax(std::int64_t rows, std::int64_t n, const float* x,
                                          float* out) {
  for (std::int64_t i = 0; i < rows; ++i, x += n, out += n) {
    const packet top = splat(max_of(x, n));
    chains sum(0);
    each(n, [&](std::int64_t k, std::int64_t m, int c) {
      sum.add(c, V{simd::psub(load(x + k, m), top)}.exp().v, m);
    });
    const packet less = V{splat(sum.sum())}.log().v;
    each(n, [&](std::int64_t k, std::int64_t m, int) {
      store(out + k, simd::psub(simd::psub(load(x + k, m), top), less), m);
    });
  }
}

/// softmax, and the gradient of the sum of softmax times g.
[[gnu::noinline]] inline void softmax_gradient(std::int64_t rows, std::int64_t n, const float* x,
                                               const float* g, float* out, float* dx, float* e) {
  for (std::int64_t i = 0; i < rows; ++i, x += n, g += n, out += n, dx += n) {
    const packet scale = splat(1 / exp_of(x, e, n, max_of(x, n)));
    chains dot(0);
    each(n, [&](std::int64_t k, std::int64_t m, int c) {
      const packet y = simd::pmul(simd::ploadu<packet>(e + k), scale);
      store(out + k, y, m);
      dot.add(c, simd::pmul(y, load(g + k, m)), m);
    });
    const packet mean = splat(dot.sum());
    each(n, [&](std::int64_t k, std::int64_t m, int) {
      store(dx + k, simd::pmul(load(out + k, m), simd::psub(load(g + k, m), mean)), m);
    });
  }
}

/// log_softmax, and the gradient of the sum of log_softmax times g.
[[gnu::noinline]] inline void log_softmax_gradient(std::int64_t rows, std::int64_t n,
                                                   const float* x, const float* g, float* out,
                                                   float* dx, float* e) {
  for (std::int64_t i = 0; i < rows; ++i, x += n, g += n, out += n, dx += n) {
    const float max = max_of(x, n), sum = exp_of(x, e, n, max);
    const packet top = splat(max), less = splat(std::log(sum));
    chains all(0);
    each(n, [&](std::int64_t k, std::int64_t m, int c) {
      store(out + k, simd::psub(simd::psub(load(x + k, m), top), less), m);
      all.add(c, load(g + k, m), m);
    });
    const packet scale = splat(all.sum() / sum);
    each(n, [&](std::int64_t k, std::int64_t m, int) {
      const packet y = simd::ploadu<packet>(e + k);
      store(dx + k, simd::psub(load(g + k, m), simd::pmul(y, scale)), m);
    });
  }
}

/// Mean cross-entropy of all rows, and its gradient.
[[gnu::noinline]] inline float cross_entropy(std::int64_t rows, std::int64_t n, const float* x,
                                             const std::int64_t* target, float* gradient,
                                             float* e) {
  float loss = 0;
  const float share = 1 / static_cast<float>(rows);
  for (std::int64_t i = 0; i < rows; ++i, x += n, gradient += n) {
    const float top = max_of(x, n), sum = exp_of(x, e, n, top);
    loss += std::log(sum) - (x[target[i]] - top);
    const packet scale = splat(share / sum);
    each(n, [&](std::int64_t k, std::int64_t m, int) {
      store(gradient + k, simd::pmul(simd::ploadu<packet>(e + k), scale), m);
    });
    gradient[target[i]] -= share;
  }
  return loss * share;
}

struct moments {
  packet mean, scale;
};
inline moments moments_of(const float* x, std::int64_t n) {
  const float count = static_cast<float>(n);
  chains sum(0), squares(0);
  each(n, [&](std::int64_t k, std::int64_t m, int c) { sum.add(c, load(x + k, m), m); });
  const packet mean = splat(sum.sum() / count);
  each(n, [&](std::int64_t k, std::int64_t m, int c) {
    const packet d = simd::psub(load(x + k, m), mean);
    squares.add(c, simd::pmul(d, d), m);
  });
  return {mean, splat(1 / std::sqrt(squares.sum() / count + 1e-5f))};
}

[[gnu::noinline]] inline void layer_norm(std::int64_t rows, std::int64_t n, const float* x,
                                         const float* w, const float* b, float* out) {
  for (std::int64_t i = 0; i < rows; ++i, x += n, out += n) {
    const auto [mean, scale] = moments_of(x, n);
    each(n, [&, mean = mean, scale = scale](std::int64_t k, std::int64_t m, int) {
      const packet y = simd::pmul(simd::psub(load(x + k, m), mean), scale);
      store(out + k, simd::padd(simd::pmul(y, load(w + k, m)), load(b + k, m)), m);
    });
  }
}

/// layer_norm, and the gradients of the sum of it times g; those of w and b are added up.
[[gnu::noinline]] inline void layer_norm_gradient(std::int64_t rows, std::int64_t n, const float* x,
                                                  const float* w, const float* b, const float* g,
                                                  float* out, float* dx, float* dw, float* db) {
  const packet count = splat(static_cast<float>(n));
  for (std::int64_t i = 0; i < rows; ++i, x += n, g += n, out += n, dx += n) {
    const auto [mean, scale] = moments_of(x, n);
    chains sum(0), dot(0);
    each(n, [&, mean = mean, scale = scale](std::int64_t k, std::int64_t m, int c) {
      const packet y = simd::pmul(simd::psub(load(x + k, m), mean), scale), by = load(g + k, m);
      const packet weight = load(w + k, m), d = simd::pmul(by, weight);
      store(out + k, simd::padd(simd::pmul(y, weight), load(b + k, m)), m);
      store(dw + k, simd::padd(load(dw + k, m), simd::pmul(y, by)), m);
      store(db + k, simd::padd(load(db + k, m), by), m);
      sum.add(c, d, m);
      dot.add(c, simd::pmul(d, y), m);
    });
    const packet s = simd::pdiv(splat(sum.sum()), count), t = simd::pdiv(splat(dot.sum()), count);
    each(n, [&, mean = mean, scale = scale](std::int64_t k, std::int64_t m, int) {
      const packet y = simd::pmul(simd::psub(load(x + k, m), mean), scale);
      const packet d = simd::pmul(load(g + k, m), load(w + k, m));
      store(dx + k, simd::pmul(simd::psub(simd::psub(d, s), simd::pmul(y, t)), scale), m);
    });
  }
}

[[gnu::noinline]] inline void rms_norm(std::int64_t rows, std::int64_t n, const float* x,
                                       const float* w, float* out) {
  for (std::int64_t i = 0; i < rows; ++i, x += n, out += n) {
    chains squares(0);
    each(n, [&](std::int64_t k, std::int64_t m, int c) {
      const packet p = load(x + k, m);
      squares.add(c, simd::pmul(p, p), m);
    });
    const packet scale =
        splat(1 / std::sqrt(squares.sum() / static_cast<float>(n) + 1.1920929e-7f));
    each(n, [&](std::int64_t k, std::int64_t m, int) {
      store(out + k, simd::pmul(simd::pmul(load(x + k, m), scale), load(w + k, m)), m);
    });
  }
}

/// rms_norm, and the gradients of the sum of it times g; that of w is added up.
[[gnu::noinline]] inline void rms_norm_gradient(std::int64_t rows, std::int64_t n, const float* x,
                                                const float* w, const float* g, float* out,
                                                float* dx, float* dw) {
  const float count = static_cast<float>(n);
  for (std::int64_t i = 0; i < rows; ++i, x += n, g += n, out += n, dx += n) {
    chains squares(0), dot(0);
    each(n, [&](std::int64_t k, std::int64_t m, int c) {
      const packet p = load(x + k, m);
      squares.add(c, simd::pmul(p, p), m);
    });
    const packet scale = splat(1 / std::sqrt(squares.sum() / count + 1.1920929e-7f));
    each(n, [&](std::int64_t k, std::int64_t m, int c) {
      const packet y = simd::pmul(load(x + k, m), scale), by = load(g + k, m);
      const packet weight = load(w + k, m);
      store(out + k, simd::pmul(y, weight), m);
      store(dw + k, simd::padd(load(dw + k, m), simd::pmul(y, by)), m);
      dot.add(c, simd::pmul(simd::pmul(by, weight), y), m);
    });
    const packet t = splat(dot.sum() / count);
    each(n, [&](std::int64_t k, std::int64_t m, int) {
      const packet y = simd::pmul(load(x + k, m), scale);
      const packet d = simd::pmul(load(g + k, m), load(w + k, m));
      store(dx + k, simd::pmul(simd::psub(d, simd::pmul(y, t)), scale), m);
    });
  }
}

[[gnu::noinline]] inline void gelu(std::int64_t n, const float* x, float* out) {
  each(n, [&](std::int64_t k, std::int64_t m, int) {
    const V a{load(x + k, m)};
    store(out + k, (a * a.ndtr()).v, m);
  });
}
/// gelu, and the gradient of the sum of gelu times g.
[[gnu::noinline]] inline void gelu_gradient(std::int64_t n, const float* x, const float* g,
                                            float* out, float* dx) {
  each(n, [&](std::int64_t k, std::int64_t m, int) {
    const V a{load(x + k, m)}, by{load(g + k, m)}, p = a.ndtr();
    const V density = (a * a * V::splat(-0.5f)).exp() * V::splat(0.39894228f);
    store(out + k, (a * p).v, m);
    store(dx + k, (by * (p + a * density)).v, m);
  });
}

inline V sigmoid(V x) { return V::splat(1) / (V::splat(1) + (-x).exp()); }
/// silu(a) times b.
[[gnu::noinline]] inline void swiglu(std::int64_t n, const float* a, const float* b, float* out) {
  each(n, [&](std::int64_t k, std::int64_t m, int) {
    const V x{load(a + k, m)};
    store(out + k, (x * sigmoid(x) * V{load(b + k, m)}).v, m);
  });
}
/// The same, and the gradients of the sum of it times g.
[[gnu::noinline]] inline void swiglu_gradient(std::int64_t n, const float* a, const float* b,
                                              const float* g, float* out, float* da, float* db) {
  each(n, [&](std::int64_t k, std::int64_t m, int) {
    const V x{load(a + k, m)}, gate{load(b + k, m)}, by{load(g + k, m)};
    const V s = sigmoid(x), y = x * s;
    store(out + k, (y * gate).v, m);
    store(db + k, (by * y).v, m);
    store(da + k, (by * gate * (s + y * (V::splat(1) - s))).v, m);
  });
}

/// The sum of a times b along each row.
[[gnu::noinline]] inline void dots(std::int64_t rows, std::int64_t n, const float* a,
                                   const float* b, float* out) {
  for (std::int64_t i = 0; i < rows; ++i, a += n, b += n) {
    chains sum(0);
    each(n, [&](std::int64_t k, std::int64_t m, int c) {
      sum.add(c, simd::pmul(load(a + k, m), load(b + k, m)), m);
    });
    out[i] = sum.sum();
  }
}

/// The sums of the columns.
[[gnu::noinline]] inline void column_sums(std::int64_t rows, std::int64_t n, const float* x,
                                          float* out) {
  std::fill_n(out, n, 0.f);
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * n)
    each(n, [&](std::int64_t k, std::int64_t m, int) {
      packet s = load(out + k, m);
      for (int j = 0; j < 4; ++j) s = simd::padd(s, load(x + j * n + k, m));
      store(out + k, s, m);
    });
  for (; i < rows; ++i, x += n)
    each(n, [&](std::int64_t k, std::int64_t m, int) {
      store(out + k, simd::padd(load(out + k, m), load(x + k, m)), m);
    });
}

}  // namespace bench::rows
