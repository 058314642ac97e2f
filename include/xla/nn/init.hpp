// SPDX-License-Identifier: Apache-2.0
#pragma once

// Initialisers of parameters. Layers call them in their constructors; models call them again for a
// scheme of their own.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "xla/base/instance.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/derived/fill.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/permute.hpp"
#include "xla/run/trace/runtime.hpp"
#include "xla/tensor/state.hpp"

/// Initialisers by PyTorch's names; they write a parameter, buffer or tensor in place, at run time.
namespace xla::nn::init {

/// Every element the same number.
template <class T, int R>
void constant_(Tensor<T, R>& p, std::type_identity_t<T> value) {
  p.fill_(value);
}
template <class T, int R>
void zeros_(Tensor<T, R>& p) {
  constant_(p, T(0));
}
template <class T, int R>
void ones_(Tensor<T, R>& p) {
  constant_(p, T(1));
}

/// Uniform in [low, high).
template <class T, int R>
void uniform_(Tensor<T, R>& p, std::type_identity_t<T> low = T(0),
              std::type_identity_t<T> high = T(1)) {
  fill_uniform_(p, low, high);
}

/// Normal with the given mean and standard deviation.
template <class T, int R>
void normal_(Tensor<T, R>& p, std::type_identity_t<T> mean = T(0),
             std::type_identity_t<T> std = T(1)) {
  fill_normal_(p, mean, std);
}

/// Fan-in and fan-out of a weight (out, in, …), the numbers of inputs and outputs that share each
/// of its elements, as PyTorch counts them.
template <class T, int R>
std::pair<std::int64_t, std::int64_t> fans(const Tensor<T, R>& p) {
  static_assert(R >= 2, "xla::nn::init: needs a weight of at least two axes (out, in, …)");
  std::int64_t field = 1;
  for (int i = 2; i < R; ++i) field *= std::int64_t(p.size(i));
  return {std::int64_t(p.size(1)) * field, std::int64_t(p.size(0)) * field};
}

/// The function that follows a layer, whose loss of variance the initial weights compensate.
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// The factor for the standard deviation; a is leaky_relu's slope.
template <class = void>
inline double calculate_gain(Nonlinearity f, double a = 0.01) {
  switch (f) {
    case Nonlinearity::tanh: return 5.0 / 3;
    case Nonlinearity::relu: return std::sqrt(2.0);
    case Nonlinearity::leaky_relu: return std::sqrt(2 / (1 + a * a));
    case Nonlinearity::selu: return 0.75;
    default: return 1;
  }
}

/// Uniform with a standard deviation of gain sqrt(2 / (in + out)). Glorot and Bengio (2010).
template <class T, int R>
void xavier_uniform_(Tensor<T, R>& p, double gain = 1) {
  const auto [in, out] = fans(p);
  const T bound = static_cast<T>(gain * std::sqrt(6.0 / static_cast<double>(in + out)));
  uniform_(p, -bound, bound);
}
/// The same, normal.
template <class T, int R>
void xavier_normal_(Tensor<T, R>& p, double gain = 1) {
  const auto [in, out] = fans(p);
  normal_(p, 0, static_cast<T>(gain * std::sqrt(2.0 / static_cast<double>(in + out))));
}

/// Whether Kaiming's initialisers preserve the variance forward (by a weight's inputs) or backward.
enum class Fan { in, out };

/// How Kaiming's initialisers scale, by PyTorch's names and with its defaults.
struct KaimingOptions {
  double a = 0;  ///< leaky_relu's slope
  Fan mode = Fan::in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};

/// The standard deviation that Kaiming's initialisers give a weight.
template <class T, int R>
double kaiming_std(const Tensor<T, R>& p, const KaimingOptions& options) {
  const auto [in, out] = fans(p);
  const auto fan = static_cast<double>(options.mode == Fan::in ? in : out);
  return calculate_gain(options.nonlinearity, options.a) / std::sqrt(fan);
}

/// Uniform with a standard deviation of gain / sqrt(fan). He et al. (2015).
template <class T, int R>
void kaiming_uniform_(Tensor<T, R>& p, const KaimingOptions& options = {}) {
  const T bound = static_cast<T>(std::sqrt(3.0) * kaiming_std(p, options));
  uniform_(p, -bound, bound);
}
/// The same, normal.
template <class T, int R>
void kaiming_normal_(Tensor<T, R>& p, const KaimingOptions& options = {}) {
  normal_(p, 0, static_cast<T>(kaiming_std(p, options)));
}

/// The probability of a standard normal number below z.
template <class = void>
inline double normal_probability(double z) {
  return std::erfc(-z / std::sqrt(2.0)) / 2;
}

/// The number below which a standard normal number is with probability p, for p in (0, 1).
template <class = void>
inline double normal_quantile(double p) {
  // Winitzki's (2008) approximation of the inverse of erf, then Halley's method.
  const double l = std::log(4 * p * (1 - p)), h = 4.3307 + l / 2;
  const double square = 2 * (std::sqrt(h * h - l / 0.147) - h);
  double z = std::copysign(std::sqrt(std::max(square, 0.0)), p - 0.5);
  for (int i = 0; i < 3; ++i) {
    const double density = std::exp(-z * z / 2) * 0.3989422804014327;
    if (density == 0) break;
    const double step = (normal_probability(z) - p) / density;
    z -= step / (1 + z * step / 2);
  }
  return z;
}

template <class T, int R>
void write_values(Tensor<T, R>& p, const std::vector<T>& values) {
  Size sizes[R > 0 ? R : 1] = {1};
  for (int i = 0; i < R; ++i) sizes[i] = p.size(i);
  if constexpr (R == 0) p.fill_(values[0]);
  else p.copy_(from_blob(values.data(), sizes));
}

/// Normal numbers truncated to [a, b].
template <class T, int R>
void trunc_normal_(Tensor<T, R>& p, double mean = 0, double std = 1, double a = -2, double b = 2) {
  const double low = normal_probability((a - mean) / std);
  const double high = normal_probability((b - mean) / std);
  std::vector<T> values = rand_like(p.detach()).to_vector();
  for (T& v : values) {
    const double u = low + (static_cast<double>(v) + 1e-8) * (high - low);
    v = static_cast<T>(std::clamp(mean + std * normal_quantile(u), a, b));
  }
  write_values(p, values);
}

/// Makes the rows of a (rows, width) orthonormal, with rows <= width: block Gram-Schmidt, applied
/// twice for accuracy.
template <class T>
void orthonormalize_rows(std::vector<T>& a, std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t block = 64;
  const auto row = [&](std::int64_t i) { return a.data() + i * width; };
  const auto product = [&](std::int64_t i, std::int64_t k) {
    T sum = 0;
    for (std::int64_t c = 0; c < width; ++c) sum = sum + row(i)[c] * row(k)[c];
    return sum;
  };
  for (std::int64_t first = 0; first < rows; first += block) {
    const std::int64_t last = std::min(first + block, rows);
    for (int pass = 0; pass < 2; ++pass) {
      if (first > 0) {
        const auto done = from_blob(a.data(), {first, width});
        const auto now = from_blob(row(first), {last - first, width});
        const auto rest = now - matmul(matmul(now, transpose(done)), done);
        std::copy_n(rest.data(), (last - first) * width, row(first));
      }
      for (std::int64_t i = first; i < last; ++i) {
        for (std::int64_t k = first; k < i; ++k) {
          const T along = product(i, k);
          for (std::int64_t c = 0; c < width; ++c) row(i)[c] -= along * row(k)[c];
        }
        const T length = std::sqrt(product(i, i));
        for (std::int64_t c = 0; c < width; ++c) row(i)[c] /= length;
      }
    }
  }
}

/// A random orthogonal matrix times gain: p is viewed as a matrix (first axis, all others), whose
/// rows, or columns if there are fewer, are orthogonal to each other. Saxe et al. (2013).
template <class T, int R>
void orthogonal_(Tensor<T, R>& p, double gain = 1) {
  static_assert(R >= 2, "xla::nn::init: orthogonal_ needs a weight of at least two axes");
  const std::int64_t n = p.numel(), rows = p.size(0);
  if (n == 0) return;
  const std::int64_t columns = n / rows, most = std::max(rows, columns);
  const bool turned = rows > columns;
  std::vector<T> values = randn_like(p.detach()).to_vector();
  std::vector<double> a(values.size());
  const auto index = [&](std::int64_t i) {
    return static_cast<std::size_t>(turned ? i % columns * most + i / columns : i);
  };
  for (std::int64_t i = 0; i < n; ++i)
    a[index(i)] = static_cast<double>(values[static_cast<std::size_t>(i)]);
  orthonormalize_rows(a, n / most, most);
  for (std::int64_t i = 0; i < n; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<T>(gain * a[index(i)]);
  write_values(p, values);
}

}  // namespace xla::nn::init
