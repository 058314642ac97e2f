// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "support/bfloat16_algorithms.hpp"
#include "support/fenced.hpp"
#include "support/products.hpp"
#include "support/sanitized.hpp"
#include "support/threads.hpp"
#include "xla/kernel/gemm/bfloat16.hpp"
#include "xla/kernel/memory/cache_sizes.hpp"

namespace {

using test::each_bfloat16_algorithm;
using test::index_t;
using test::matrix;
using test::same_bits;
using xla::bfloat16;
using xla::kernel::bfloat16_algorithm;
using xla::kernel::gemm_bfloat16;
using xla::kernel::matrix_view;

template <class A, class B>
struct rounded : test::rounding<A, B> {
  static void multiply(index_t m, index_t n, index_t k, matrix_view<A> a, matrix_view<B> b,
                       float* c, index_t ldc) {
    gemm_bfloat16(m, n, k, a, b, c, ldc);
  }
};
using floats = rounded<float, float>;
using both_bfloat16 = rounded<bfloat16, bfloat16>;
using mixed = rounded<float, bfloat16>;
using transposed = rounded<bfloat16, float>;

}  // namespace

TEMPLATE_TEST_CASE("products of rounded operands agree with sums in long double", "", floats,
                   both_bfloat16, mixed, transposed) {
  const test::restore_threads guard;
  each_bfloat16_algorithm([] {
    std::mt19937 random(7);
    const auto layout = [&] { return static_cast<int>(random() % 5); };
    const auto check = [&](index_t m, index_t n, index_t k) {
      test::check_product<TestType>(m, n, k, layout(), layout(), random);
    };
    for (const index_t m : {0, 1, 2, 7, 9})
      for (const index_t n : {0, 1, 15, 17})
        for (const index_t k : {0, 1, 2, 3, 33}) check(m, n, k);
    for (int repeat = 0; repeat < 40; ++repeat) {
      const index_t most = repeat % 10 == 0 ? 150 : 40;
      const auto size = [&] { return static_cast<index_t>(random()) % most; };
      const index_t m = size(), n = size(), k = size();
      test::check_product<TestType>(m, n, k, repeat % 5, repeat / 5 % 5, random);
    }
    struct {
      index_t m, n, k;
    } const large[] = {{64, 128, 784}, {300, 1, 900},  {130, 70, 601}, {257, 51, 1100},
                       {3, 900, 300},  {70, 400, 21},  {4, 1100, 257}, {1, 700, 1030},
                       {2, 19, 4099},  {33, 49, 2049}, {700, 20, 129}};
    for (const auto& [m, n, k] : large)
      if (!test::sanitized || m * n * k < 1000000) check(m, n, k);
  });
}

TEST_CASE("bfloat16 in memory gives the bits of floats that are rounded") {
  each_bfloat16_algorithm([] {
    std::mt19937 random(3);
    for (const index_t m : {2, 40})
      for (const int layout : {0, 1, 3}) {
        const index_t n = 70, k = 1301;
        const matrix<float> a(m, k, layout, random), b(k, n, 1 - layout % 2, random);
        const matrix<bfloat16> small_a(a, m, k, true), small_b(b, k, n, false);
        const auto want = test::product<floats>(m, n, k, a, b, n);
        CHECK(same_bits(want, test::product<both_bfloat16>(m, n, k, small_a, small_b, n)));
        CHECK(same_bits(want, test::product<mixed>(m, n, k, a, small_b, n)));
        CHECK(same_bits(want, test::product<transposed>(m, n, k, small_a, b, n)));
      }
  });
}

TEST_CASE("large rounded products are shared among threads") {
  const test::restore_threads guard;
  each_bfloat16_algorithm([] {
    std::mt19937 random(5);
    if (!test::sanitized) {
      test::check_product<floats>(5301, 49, 400, 1, 0, random);
      test::check_product<floats>(1030, 350, 1050, 2, 1, random);
      test::check_product<both_bfloat16>(130, 900, 2100, 0, 1, random);
      test::check_product<floats>(140, 70, 5301, 1, 0, random);  // blocks of k
      test::check_product<both_bfloat16>(64, 128, 784, 0, 1, random);
    }
    test::check_product<floats>(1030, 49, 40, 1, 0, random);
    test::check_product<both_bfloat16>(20, 33, 2050, 0, 1, random);
    // Each thread packs the left operand for itself.
    test::check_product<floats>(128, 130, 64, 0, 1, random);
    test::check_product<floats>(131, 260, 90, 1, 0, random);
  });
}

TEMPLATE_TEST_CASE("few rounded rows sum both layouts in one order", "", floats, both_bfloat16) {
  const test::restore_threads guard;
  each_bfloat16_algorithm([] {
    std::mt19937 random(11);
    for (const index_t m : {1, 2, 3, 4, 5})
      for (const index_t k : {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 300})
        test::check_product<TestType>(
            m, 1 + static_cast<index_t>(random()) % (test::sanitized ? 150 : 600), k,
            static_cast<int>(random() % 5), static_cast<int>(random() % 5), random);
  });
}

TEMPLATE_TEST_CASE("columns that come from memory have the bits of near ones", "", float,
                   bfloat16) {
  const index_t k = 4099, some = 7;
  const index_t n = xla::kernel::near_memory<> / static_cast<index_t>(k * sizeof(TestType)) + some;
  std::vector<TestType> a(static_cast<std::size_t>(4 * k)), b(static_cast<std::size_t>(n * k));
  for (auto* v : {&a, &b})
    for (std::size_t i = 0; i < v->size(); ++i)
      (*v)[i] = static_cast<TestType>(static_cast<float>(i * 7919 % 1000) * 1e-3f - .5f);
  for (const index_t m : {1, 3, 4}) {
    const auto product = [&](index_t first, index_t columns) {
      std::vector<float> c(static_cast<std::size_t>(m * columns));
      gemm_bfloat16<TestType, TestType>(m, columns, k, {a.data(), k, 1},
                                        {b.data() + first * k, 1, k}, c.data(), columns);
      return c;
    };
    const auto all = product(0, n);
    for (const index_t first : {index_t{0}, n / 2, n - some}) {
      const auto near = product(first, some);
      for (index_t i = 0; i < m; ++i)
        CHECK(std::equal(near.data() + i * some, near.data() + (i + 1) * some,
                         all.data() + i * n + first));
    }
  }
}

TEST_CASE("rounded columns that are read in place have the bits of packed ones") {
  const test::restore_threads guard;
  test::each_bfloat16_algorithm([] {
    std::mt19937 random(13);
    for (const int threads : {1, 3}) {
      xla::set_num_threads(threads);
      for (const index_t m : {5, 8})
        for (const index_t k : {1, 64, 1301}) {
          const index_t n = threads == 1 ? 70 : 300;
          const matrix<float> a(m, k, 0, random), b(k, n, 0, random), transposed(b, k, n, false);
          CHECK(same_bits(test::product<floats>(m, n, k, a, b, n),
                          test::product<floats>(m, n, k, a, transposed, n)));
        }
    }
  });
}

TEST_CASE("a long rounded k is summed in pieces") {
  each_bfloat16_algorithm([] {
    const index_t k = 40000, n = 20;
    const std::vector<float> ones(static_cast<std::size_t>(k * n), 1.001f);
    std::vector<float> c(8 * n);
    gemm_bfloat16<float, float>(8, n, k, {ones.data(), k, 1}, {ones.data(), 1, k}, c.data(), n);
    // 1.001 is rounded to 1.
    for (const float x : c) CHECK(x == static_cast<float>(k));
  });
}

TEST_CASE("rounding is to the nearest even, infinities and NaN stay") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  float full_nan;
  const std::uint32_t all_ones = 0x7fffffffu;
  std::memcpy(&full_nan, &all_ones, 4);
  const float step = 1.f / 128;  // of bfloat16 at 1
  const float from[] = {1 + step / 2,
                        1 + 1.5f * step,
                        1 + 0.501f * step,
                        -1 - 1.5f * step,
                        inf,
                        -inf,
                        nan,
                        full_nan,
                        3.3999999e38f,
                        0.f,
                        -0.f};
  const float want[] = {1, 1 + 2 * step, 1 + step, -1 - 2 * step, inf, -inf, nan, nan, inf, 0, 0};
  const index_t count = std::size(from);
  each_bfloat16_algorithm([&] {
    for (const index_t n : {1, 9, 40})
      for (const bool transposed : {false, true}) {
        std::vector<float> one(static_cast<std::size_t>(n), 1.f), c(one.size() * count);
        // Each number times 1, from the left and from the right.
        if (transposed)
          gemm_bfloat16<float, float>(n, count, 1, {one.data(), 1, 1}, {from, count, 1}, c.data(),
                                      count);
        else
          gemm_bfloat16<float, float>(count, n, 1, {from, 1, 1}, {one.data(), n, 1}, c.data(), n);
        for (index_t i = 0; i < n; ++i)
          for (index_t j = 0; j < count; ++j) {
            const float got = c[static_cast<std::size_t>(transposed ? i * count + j : j * n + i)];
            CAPTURE(n, transposed, j, got);
            CHECK((std::isnan(want[j]) ? std::isnan(got) : got == want[j]));
          }
      }
  });
}

TEMPLATE_TEST_CASE("rounded products touch nothing but their matrices", "", float, bfloat16) {
  each_bfloat16_algorithm([] {
    std::mt19937 random(13);
    using view = matrix_view<TestType>;
    for (const bool at_end : {false, true})
      for (const index_t m : {1, 5, 17, 41})
        for (const index_t n : {1, 7, 33, 50})
          for (const index_t k : {1, 2, 31, 67}) {
            const test::fenced<TestType> a(m * k, at_end, random), b(k * n, at_end, random);
            const test::fenced<float> c(m * n, at_end, random);
            for (const bool ta : {false, true})
              for (const bool tb : {false, true})
                gemm_bfloat16(m, n, k, ta ? view{a.data(), 1, m} : view{a.data(), k, 1},
                              tb ? view{b.data(), 1, k} : view{b.data(), n, 1}, c.data(), n);
          }
  });
}

TEST_CASE("an epilogue is notified of every tile of a rounded product") {
  each_bfloat16_algorithm([] {
    std::mt19937 random(17);
    for (const index_t m : {9, 300})
      test::check_epilogue(m, 1100, random,
                           [m](auto a, auto b, float* c, const xla::kernel::epilogue* after) {
                             gemm_bfloat16(m, 100, 1100, a, b, c, 100, after);
                           });
  });
}

TEST_CASE("the environment says which way rounded products take", "[.environment]") {
  const char* const text = std::getenv("XLA_BF16");
  REQUIRE(text != nullptr);
  // What is asked for and not there, AMX first of all, is not taken.
  namespace detail = xla::kernel::detail;
  const std::string_view said = text;
  const bool dot = said == "dot" || (said == "amx" && detail::dot_is_faster());
  const bfloat16_algorithm other =
      dot && detail::has_dot() ? bfloat16_algorithm::dot : bfloat16_algorithm::fma;
  CHECK(xla::kernel::bfloat16_products() ==
        (said == "amx" && detail::has_amx() ? bfloat16_algorithm::amx : other));
}

TEST_CASE("without the instructions rounded floats are multiplied", "[.valgrind]") {
  namespace detail = xla::kernel::detail;
  INFO("run by valgrind, whose processor has no AVX-512");
  REQUIRE(!detail::has_dot());
  CHECK(!detail::has_amx());
  CHECK(xla::kernel::bfloat16_products() == bfloat16_algorithm::fma);
  for (const std::string_view said : {"", "fma", "dot", "amx"})
    CHECK(detail::choose_bfloat16_algorithm(said, &detail::has_amx<>) == bfloat16_algorithm::fma);
}
