// SPDX-License-Identifier: Apache-2.0
#include "xla/kernel/simd/lane.hpp"

#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "catch.hpp"

namespace {

namespace kernel = xla::kernel;

template <class T>
std::vector<T> lanes_of(kernel::packet<T> p) {
  std::vector<T> out(kernel::lanes<T>, T(0));
  if constexpr (kernel::lanes<T> == 1) out[0] = p;
  else kernel::simd::pstoreu(out.data(), p);
  return out;
}
template <class T>
kernel::packet<T> from(const T* p) {
  if constexpr (kernel::lanes<T> == 1) return *p;
  else return kernel::simd::ploadu<kernel::packet<T>>(p);
}
template <class T>
bool same(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
constexpr T special[] = {T(0),
                         T(-0.0),
                         T(1),
                         T(-1),
                         std::numeric_limits<T>::infinity(),
                         -std::numeric_limits<T>::infinity(),
                         std::numeric_limits<T>::quiet_NaN(),
                         std::numeric_limits<T>::denorm_min(),
                         std::numeric_limits<T>::max()};

/// f of packets against g of numbers, at all pairs of special values in every lane.
template <class T, class F, class G>
void check_pairs(F f, G g) {
  constexpr std::size_t w = kernel::lanes<T>, count = std::size(special<T>);
  for (std::size_t first = 0; first < count * count; first += w) {
    T a[w], b[w];
    for (std::size_t i = 0; i < w; ++i) {
      a[i] = special<T>[(first + i) / count % count];
      b[i] = special<T>[(first + i) % count];
    }
    const auto got = lanes_of<T>(f(kernel::vec<T>{from(a)}, kernel::vec<T>{from(b)}).v);
    for (std::size_t i = 0; i < w; ++i) {
      INFO("of " << a[i] << " and " << b[i]);
      CHECK(same(got[i], g(a[i], b[i])));
    }
  }
}

template <class T>
void check_choices() {
  using V = kernel::vec<T>;
  const auto one = V::splat(T(1)), zero = V::splat(T(0));
  check_pairs<T>([](V a, V b) { return a.max(b); }, [](T a, T b) { return b > a ? b : a; });
  check_pairs<T>([](V a, V b) { return a.min(b); }, [](T a, T b) { return b < a ? b : a; });
  check_pairs<T>([](V a, V b) { return a.max_nan(b); },
                 [](T a, T b) { return b != b || b > a ? b : a; });
  check_pairs<T>([](V a, V b) { return a.min_nan(b); },
                 [](T a, T b) { return b != b || b < a ? b : a; });
  check_pairs<T>([=](V a, V b) { return (a < b).select(one, zero); },
                 [](T a, T b) { return T(a < b); });
  check_pairs<T>([=](V a, V b) { return (a <= b).select(one, zero); },
                 [](T a, T b) { return T(a <= b); });
  check_pairs<T>([=](V a, V b) { return (a == b).select(one, zero); },
                 [](T a, T b) { return T(a == b); });
  check_pairs<T>([=](V a, V b) { return (a != b).select(one, zero); },
                 [](T a, T b) { return T(a != b); });
  check_pairs<T>([=](V a, V b) { return ((a < b) != (b == b)).select(one, zero); },
                 [](T a, T b) { return T((a < b) != (b == b)); });
  check_pairs<T>([=](V a, V b) { return (!(a < b) && (b < zero || a > b)).select(one, zero); },
                 [](T a, T b) { return T(!(a < b) && (b < 0 || a > b)); });
}

template <class T>
void check_parts() {
  if constexpr (kernel::lanes<T> > 1) {
    constexpr std::int64_t w = kernel::lanes<T>;
    for (std::int64_t n = 1; n < w; ++n) {
      INFO(n << " of " << w << " lanes");
      // Nothing beyond is touched: the sanitizer watches the ends of these.
      std::vector<T> in(static_cast<std::size_t>(n)), out(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) in[static_cast<std::size_t>(i)] = T(i + 1);
      const auto p = kernel::load_part<T>(in.data(), n);
      const auto rest = lanes_of<T>(kernel::replace_rest<T>(p, T(-5), n)), all = lanes_of<T>(p);
      for (std::int64_t i = 0; i < w; ++i) {
        const auto at = static_cast<std::size_t>(i);
        CHECK(all[at] == (i < n ? T(i + 1) : T(0)));
        CHECK(rest[at] == (i < n ? T(i + 1) : T(-5)));
      }
      kernel::store_part<T>(out.data(), p, n);
      CHECK(out == in);
      std::vector<T> wide(static_cast<std::size_t>(w), T(9));
      kernel::store_part<T>(wide.data(), p, n);
      for (std::int64_t i = n; i < w; ++i) CHECK(wide[static_cast<std::size_t>(i)] == T(9));
    }
  }
}

template <class T>
void check_truth() {
  if constexpr (kernel::lanes<T> > 1) {
    constexpr std::int64_t w = kernel::lanes<T>;
    for (std::int64_t n = 1; n <= w; ++n) {
      const std::size_t count = static_cast<std::size_t>(n);
      const auto in = std::make_unique<bool[]>(count), out = std::make_unique<bool[]>(count);
      for (std::size_t i = 0; i < count; ++i) in[i] = i % 3 == 0;
      const auto t = kernel::detail::load_mask<T>(in.get(), n);
      kernel::detail::store_mask<T>(out.get(), t, n);
      const auto all = lanes_of<T>(
          kernel::mask<T>{t}.select(kernel::vec<T>::splat(T(1)), kernel::vec<T>::splat(T(0))).v);
      for (std::size_t i = 0; i < static_cast<std::size_t>(w); ++i)
        CHECK(all[i] == T(i < count && in[i]));
      for (std::size_t i = 0; i < count; ++i) CHECK(out[i] == in[i]);
    }
  }
}

template <class T>
void check_across() {
  constexpr std::size_t w = kernel::lanes<T>;
  using V = kernel::vec<T>;
  std::vector<T> x(w), half;
  for (std::size_t i = 0; i < w; ++i) x[i] = T(1) / T(3 + i * i);
  half = x;
  for (std::size_t m = w / 2; m > 0; m /= 2)
    for (std::size_t i = 0; i < m; ++i) half[i] += half[i + m];
  for (T got : lanes_of<T>(V{from(x.data())}.across([](V a, V b) { return a + b; }).v))
    CHECK(same(got, half[0]));
  // Zeros of both signs: whichever is left, it is the same in every lane.
  for (std::size_t i = 0; i < w; ++i) x[i] = i % 2 ? T(0) : T(-0.0);
  const auto zeros = lanes_of<T>(V{from(x.data())}.across([](V a, V b) { return a.max_nan(b); }).v);
  for (T z : zeros) CHECK(same(z, zeros[0]));
}

}  // namespace

TEST_CASE("choices between packets are those between numbers, special values too") {
  check_choices<float>();
  check_choices<double>();
}

TEST_CASE("parts of packets touch nothing beyond") {
  check_parts<float>();
  check_parts<double>();
}

TEST_CASE("truth goes to memory and back") {
  check_truth<float>();
  check_truth<double>();
}

TEST_CASE("lanes are combined in halves, the result is in all of them") {
  check_across<float>();
  check_across<double>();
}
