// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <sstream>
#include <vector>

#include "xla/op/create.hpp"
#include "xla/op/methods.hpp"

#include "catch.hpp"

namespace test {

using sizes_t = std::vector<std::int64_t>;

std::int64_t product(const sizes_t& sizes);

/// Numbers that look random and are the same everywhere: in [-4, 4), whole ones for integers,
/// [0, 16) for uint8.
template <class T>
T number(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  x ^= x >> 31;
  if constexpr (std::is_same_v<T, bool>) return x & 1;
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(static_cast<double>(x >> 40) / (1 << 24) * 8 - 4);
  else return static_cast<T>(x % 16) - static_cast<T>(std::is_signed_v<T> ? 8 : 0);
}

/// A tensor of such numbers.
template <class T, std::size_t N>
xla::Tensor<T, static_cast<int>(N)> numbers(const xla::Size (&sizes)[N], std::uint64_t seed = 0) {
  std::size_t n = 1;
  for (auto s : sizes) n *= static_cast<std::size_t>(std::int64_t(s));
  const auto v = std::make_unique<T[]>(n + 1);
  for (std::size_t i = 0; i < n; ++i) v[i] = number<T>(seed, i);
  return xla::from_blob(v.get(), sizes);
}

template <class T>
std::vector<T> special_values() {
  if constexpr (std::is_floating_point_v<T>) {
    using limits = std::numeric_limits<T>;
    const T nan = limits::quiet_NaN(), inf = limits::infinity();
    return {
        nan,           inf,    -inf,   T(0), -T(0), T(1), T(-1), limits::max(), limits::lowest(),
        limits::min(), T(0.5), T(-2.5)};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {true, false};
  } else {
    using limits = std::numeric_limits<T>;
    return {limits::min(), limits::max(), T(0), T(1), static_cast<T>(-1), T(3)};
  }
}

/// Every pair of special values, as two vectors.
template <class T>
void special_pairs(std::vector<T>& a, std::vector<T>& b) {
  for (T x : special_values<T>())
    for (T y : special_values<T>()) a.push_back(x), b.push_back(y);
}

sizes_t broadcast(const sizes_t& a, const sizes_t& b);

/// Where element i of a tensor of sizes `to` comes from when `from` was broadcast to it.
std::size_t source_of(std::int64_t i, const sizes_t& to, const sizes_t& from);

/// f(a, b) element by element, broadcast, by a plain loop.
template <class Out, class T, class F>
std::vector<Out> map_pairs(const T* a, const sizes_t& a_sizes, const T* b, const sizes_t& b_sizes,
                           F f) {
  const sizes_t to = broadcast(a_sizes, b_sizes);
  std::vector<Out> out;
  for (std::int64_t i = 0; i < product(to); ++i)
    out.push_back(static_cast<Out>(f(a[source_of(i, to, a_sizes)], b[source_of(i, to, b_sizes)])));
  return out;
}
template <class Out, class T, int A, int B, class F>
std::vector<Out> map_pairs(const xla::Tensor<T, A>& a, const xla::Tensor<T, B>& b, F f) {
  return map_pairs<Out>(a.data(), a.sizes(), b.data(), b.sizes(), f);
}

template <class Out, class T, int R, class F>
std::vector<Out> map_each(const xla::Tensor<T, R>& x, F f) {
  std::vector<Out> out;
  const T* const data = x.data();
  const std::int64_t n = product(x.sizes());
  for (std::int64_t i = 0; i < n; ++i) out.push_back(static_cast<Out>(f(data[i])));
  return out;
}

template <class T>
bool same_number(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) && std::isnan(b)) return true;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// The tolerance for results that are otherwise compared bit by bit: XLA_TEST_ROUNDING in the
/// environment, for a backend that computes differently; 0 without.
double rounding();

template <class T>
bool close_number(T a, T b, double tolerance, double floor) {
  if (same_number(a, b)) return true;
  if constexpr (!std::is_floating_point_v<T>) return false;
  else {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    if (!std::isfinite(x) || !std::isfinite(y)) return false;
    return std::abs(x - y) <= tolerance * std::max(floor, std::abs(y));
  }
}

template <class T>
void check_elements(const T* got, std::int64_t n, const std::vector<T>& want, double tolerance,
                    double floor) {
  REQUIRE(n == static_cast<std::int64_t>(want.size()));
  tolerance = std::max(tolerance, rounding());
  for (std::size_t i = 0; i < want.size(); ++i) {
    const T w = want[i];
    if (tolerance == 0 ? same_number(got[i], w) : close_number(got[i], w, tolerance, floor))
      continue;
    std::ostringstream s;
    s.precision(17);
    s << "element " << i << " is " << +got[i] << ", should be " << +w;
    FAIL_CHECK(s.str());
    return;
  }
  SUCCEED();
}

void check_sizes(const sizes_t& got, const sizes_t& want);

template <class T>
void check_tensor(const T* got, const sizes_t& sizes, const sizes_t& want_sizes,
                  const std::vector<T>& want, double tolerance, double floor) {
  check_sizes(sizes, want_sizes);
  check_elements(got, product(sizes), want, tolerance, floor);
}
// What most tests compare is compiled once, in reference.cpp.
extern template void check_tensor(const float*, const sizes_t&, const sizes_t&,
                                  const std::vector<float>&, double, double);
extern template void check_tensor(const double*, const sizes_t&, const sizes_t&,
                                  const std::vector<double>&, double, double);
extern template void check_tensor(const std::int64_t*, const sizes_t&, const sizes_t&,
                                  const std::vector<std::int64_t>&, double, double);
extern template void check_tensor(const std::int32_t*, const sizes_t&, const sizes_t&,
                                  const std::vector<std::int32_t>&, double, double);
extern template void check_tensor(const bool*, const sizes_t&, const sizes_t&,
                                  const std::vector<bool>&, double, double);

/// The sizes, and every element: the same bits (any NaN for NaN), or within a tolerance that is
/// relative above `floor` and absolute below.
template <class T, int R>
void check_equal(const xla::Tensor<T, R>& got, const sizes_t& sizes, const std::vector<T>& want,
                 double tolerance = 0, double floor = 1) {
  check_tensor(got.data(), got.sizes(), sizes, want, tolerance, floor);
}

template <class T, int R>
void check_equal(const xla::Tensor<T, R>& got, const xla::Tensor<T, R>& want,
                 double tolerance = 0) {
  check_equal(got, want.sizes(), want.to_vector(), tolerance);
}

}  // namespace test

#ifndef XLA_TEST_LINKED  // a test of one source, built by hand
#include "support/reference.cpp"
#endif
