// SPDX-License-Identifier: Apache-2.0
// Products by the tiles of AMX, whose instructions are emulated: every machine runs these. Those
// marked [.instructions] run the processor's, where XLA_TEST_AMX=1 says so.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__) && defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "catch.hpp"
#include "support/bfloat16_algorithms.hpp"
#include "support/child.hpp"
#include "support/emulated_amx.hpp"
#include "support/fenced.hpp"
#include "support/products.hpp"
#include "support/sanitized.hpp"
#include "support/threads.hpp"
#include "xla/kernel/gemm/amx.hpp"
#include "xla/kernel/gemm/amx_pack.hpp"
#include "xla/kernel/gemm/gemm.hpp"

namespace {

using namespace xla::kernel::detail;
using test::emulated_amx;
using test::same_bits;
using xla::bfloat16;
using xla::kernel::bfloat16_algorithm;
using xla::kernel::epilogue;
using xla::kernel::matrix_view;

/// Operands for the driver, packed as a function does.
struct packed_left {
  std::function<void(bfloat16_pair*, index_t, index_t, index_t, index_t, index_t)> packs;
  void pack(bfloat16_pair* to, index_t next, index_t row, index_t pair, index_t rows,
            index_t pairs) const {
    packs(to, next, row, pair, rows, pairs);
  }
  upcoming<char> ahead(range, range, index_t) const { return {}; }
  static constexpr index_t grain() { return 16; }
};
struct packed_right {
  std::function<void(bfloat16_pair*, index_t, index_t, index_t, index_t)> packs;
  void pack(bfloat16_pair* to, index_t pair, index_t column, index_t pairs, index_t columns) const {
    packs(to, pair, column, pairs, columns);
  }
};

/// Pair q of line i, of `lines` lines of `n` elements; zeros beyond.
template <class T>
bfloat16_pair pair_of(matrix_view<T> from, index_t lines, index_t depth, index_t i, index_t q) {
  const auto half = [&](index_t k) -> bfloat16_pair {
    if (i >= lines || k >= depth) return 0;
    return bfloat16{static_cast<float>(*from.from(i, k).data)}.bits();
  };
  return half(2 * q) | half(2 * q + 1) << 16;
}

/// How the tile wants them, written out: for processors that cannot run the library's packers, and
/// to compare those with.
template <class T>
packed_left left_by_hand(matrix_view<T> a, index_t k) {
  return {
      [=](bfloat16_pair* to, index_t next, index_t row, index_t pair, index_t rows, index_t pairs) {
        for (index_t i = 0; i < round_up(rows, 16); ++i)
          for (index_t q = 0; q < round_up(pairs, 16); ++q)
            to[i / 32 * next + q / 16 * 512 + i % 32 / 16 * 256 + i % 16 * 16 + q % 16] =
                pair_of(a.from(row, 2 * pair), rows, std::min(2 * pairs, k - 2 * pair), i, q);
      }};
}
template <class T>
packed_right right_by_hand(matrix_view<T> b, index_t k) {
  return {[=](bfloat16_pair* to, index_t pair, index_t column, index_t pairs, index_t columns) {
    const auto from = b.from(2 * pair, column);
    const matrix_view<T> lines{from.data, from.col_stride, from.row_stride};
    const index_t wide = round_up(columns, 16);
    for (index_t j = 0; j < wide; ++j)
      for (index_t q = 0; q < round_up(pairs, 16); ++q)
        to[q / 16 * 16 * wide + j / 16 * 256 + q % 16 * 16 + j % 16] =
            pair_of(lines, columns, std::min(2 * pairs, k - 2 * pair), j, q);
  }};
}

/// A product by emulated tiles, in the library's packers if there are any.
template <class A, class B>
void multiply_emulated(index_t m, index_t n, index_t k, matrix_view<A> a, matrix_view<B> b,
                       float* c, index_t ldc, const epilogue* after = nullptr,
                       [[maybe_unused]] bool by_hand = false) {
#if XLA_HAS_AMX
  if (!by_hand && has_dot()) return multiply_tiles<emulated_amx>(m, n, k, a, b, {c, ldc}, after);
#endif
  multiply(product<amx_tile<emulated_amx>, packed_left, packed_right>{
      m, n, (k + 1) / 2, left_by_hand(a, k), right_by_hand(b, k), {c, ldc}, after});
}

/// As test::check_product() wants it.
template <class A, class B>
struct tiles : test::rounding<A, B> {
  static void multiply(index_t m, index_t n, index_t k, matrix_view<A> a, matrix_view<B> b,
                       float* c, index_t ldc) {
    multiply_emulated(m, n, k, a, b, c, ldc);
  }
};
using floats = tiles<float, float>;
using both_bfloat16 = tiles<bfloat16, bfloat16>;
using mixed = tiles<float, bfloat16>;

/// Sums as Intel's manual has them for TDPBF16PS: within each 32 of k chains of the even and of the
/// odd, which are added up, then to what is there.
template <class A, class B>
std::vector<float> by_manual(index_t m, index_t n, index_t k, matrix_view<A> a, matrix_view<B> b) {
  const auto number = [](float x) { return test::flushed(bfloat16{x}); };
  std::vector<float> c;
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) {
      float sum = 0;
      for (index_t begin = 0; begin < k; begin += 32) {
        float chain[2] = {0, 0};
        for (index_t q = begin; q < std::min(k, begin + 32); ++q)
          chain[q % 2] = test::flushed(
              std::fma(number(*a.from(i, q).data), number(*b.from(q, j).data), chain[q % 2]));
        sum = test::flushed(sum + test::flushed(chain[0] + chain[1]));
      }
      c.push_back(sum);
    }
  return c;
}

/// A random matrix among NaN.
template <class T>
struct among_nan {
  std::vector<T> data;
  matrix_view<T> view{};

  among_nan(index_t rows, index_t columns, int layout, float scale, std::mt19937& random) {
    const test::matrix<float> from(rows, columns, layout, random);
    view = {nullptr, from.view.row_stride, from.view.col_stride};
    data.assign(from.data.size(), static_cast<T>(std::numeric_limits<float>::quiet_NaN()));
    view.data = data.data();
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j)
        data[static_cast<std::size_t>(i * view.row_stride + j * view.col_stride)] =
            static_cast<T>(from.at(i, j) * scale);
  }
};

struct shape {
  index_t m, n, k;
};
/// Of operands: for sums of ordinary size, for denormal and for infinite ones.
constexpr float scales[] = {1.f, 1e-19f, 1.8e19f};

/// Whether bits are the same but for those of NaN.
bool same_numbers(const std::vector<float>& x, const std::vector<float>& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](float p, float q) {
    return std::isnan(p) ? std::isnan(q) : std::bit_cast<int>(p) == std::bit_cast<int>(q);
  });
}

}  // namespace

TEMPLATE_TEST_CASE("products by tiles agree with sums in long double", "", floats, both_bfloat16,
                   mixed) {
  const test::restore_threads guard;
  std::mt19937 random(1);
  int layout = 0;
  // One block of k and several; a packed whole, and some micro-panels at a time.
  for (const auto& [m, n, k] : {shape{1, 1, 1},
                                {5, 7, 3},
                                {16, 16, 32},
                                {33, 49, 31},
                                {64, 70, 66},
                                {40, 33, 530},
                                {300, 20, 130}}) {
    test::check_product<TestType>(m, n, k, layout % 5, layout / 2 % 5, random);
    ++layout;
  }
  CHECK(emulated_amx::told() == "");
  CHECK(emulated_amx::held() == 0);
}

TEMPLATE_TEST_CASE("tiles sum in the manual's order and read nothing beyond a row", "", float,
                   bfloat16) {
  std::mt19937 random(2);
  for (const bool by_hand : {true, false})
    for (const auto& [m, n, k] : {shape{5, 7, 3}, {33, 49, 31}, {17, 20, 131}, {9, 34, 1030}})
      for (const float scale : scales)
        for (const int layout : {0, 1, 2, 3}) {
          if (k == 1030 && (scale != 1 || layout % 2 != 0)) continue;
          CAPTURE(by_hand, m, n, k, scale, layout);
          const among_nan<TestType> a(m, k, layout, scale, random),
              b(k, n, 3 - layout, scale, random);
          const auto want = by_manual(m, n, k, a.view, b.view);
          std::vector<float> c(want.size());
          multiply_emulated(m, n, k, a.view, b.view, c.data(), n, nullptr, by_hand);
          CHECK(same_numbers(c, want));
        }
  CHECK(emulated_amx::told() == "");
}

TEST_CASE("tiles take denormals for 0; infinities and NaN stay") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float small = std::ldexp(1.f, -130), large = 3e38f;
  const float a[] = {small, inf, nan, large, -inf, 1}, b[] = {std::ldexp(1.f, 20), 1, 0, large};
  const float near = bfloat16{large};
  const float rows[6][4] = {{0, 0, 0, 0},         {inf, inf, nan, inf},
                            {nan, nan, nan, nan}, {inf, near, 0, inf},
                            {-inf, -inf, nan, -inf}, {b[0], 1, 0, near}};
  const std::vector<float> want(&rows[0][0], &rows[0][0] + 24);
  for (const bool by_hand : {true, false}) {
    std::vector<float> c(24);
    multiply_emulated<float, float>(6, 4, 1, {a, 1, 1}, {b, 4, 1}, c.data(), 4, nullptr, by_hand);
    CHECK(same_numbers(c, want));
  }
}

TEMPLATE_TEST_CASE("tiles touch nothing but their matrices", "", float, bfloat16) {
  std::mt19937 random(3);
  using view = matrix_view<TestType>;
  for (const bool at_end : {false, true})
    for (const index_t m : {5, 33})
      for (const index_t n : {7, 50})
        for (const index_t k : {1, 31, 67}) {
          const test::fenced<TestType> a(m * k, at_end, random), b(k * n, at_end, random);
          const test::fenced<float> c(m * n, at_end, random);
          for (const bool ta : {false, true})
            for (const bool tb : {false, true})
              multiply_emulated(m, n, k, ta ? view{a.data(), 1, m} : view{a.data(), k, 1},
                                tb ? view{b.data(), 1, k} : view{b.data(), n, 1}, c.data(), n);
        }
  CHECK(emulated_amx::told() == "");
}

TEST_CASE("each thread configures its tiles and releases them before it waits") {
  const test::restore_threads guard(4);
  std::mt19937 random(4);
  const index_t m = 33, n = 300, k = 200;
  const test::matrix<float> a(m, k, 0, random), b(k, n, 0, random);
  const auto product = [&] {
    std::vector<float> c(static_cast<std::size_t>(m * n));
    multiply_emulated(m, n, k, a.view, b.view, c.data(), n);
    return c;
  };
  const int before = emulated_amx::sessions();
  const auto want = product();
  CHECK(emulated_amx::sessions() - before > 1);
  CHECK(emulated_amx::held() == 0);
  // Within another loop, of whose threads each works alone.
  std::atomic<int> wrong{0};
  xla::kernel::parallel_for(3, [&](std::int64_t) { wrong += product() != want; });
  CHECK(wrong == 0);
  CHECK(emulated_amx::held() == 0);
  // A child has none of these threads, and tiles of its own.
  if constexpr (!test::sanitized)  // which looks for leaks in the child, too
    CHECK(test::in_child([&] { return product() == want && emulated_amx::held() == 0; }) == 0);
  CHECK(emulated_amx::told() == "");
}

TEST_CASE("an epilogue is notified of every tile") {
  const test::restore_threads guard;
  std::mt19937 random(5);
  for (const int threads : {1, 4}) {
    xla::set_num_threads(threads);
    for (const index_t m : {9, 200})
      test::check_epilogue(m, 70, random, [m](auto a, auto b, float* c, const epilogue* after) {
        multiply_emulated(m, 100, 70, a, b, c, 100, after);
      });
  }
}

#if XLA_HAS_AMX
TEMPLATE_TEST_CASE("operands are packed as the tile wants them", "", float, bfloat16) {
  if (!has_dot()) return;
  std::mt19937 random(6);
  for (const index_t lines : {1, 16, 17, 40, 100})
    for (const index_t k : {1, 31, 32, 33, 64, 131})
      for (const int layout : {0, 1, 2, 3}) {
        CAPTURE(lines, k, layout);
        const among_nan<TestType> x(lines, k, layout, 1, random);
        const index_t pairs = (k + 1) / 2, deep = round_up(pairs, 16), next = 32 * deep;
        const auto size = static_cast<std::size_t>(round_up(lines, 32) * deep);
        std::vector<bfloat16_pair> want(size, 7), got(size, 7);
        left_by_hand(x.view, k).pack(want.data(), next, 0, 0, lines, pairs);
        const matrix_view<TestType> v = x.view;
        const amx_operand operand = amx_operand::of(v.data, v.row_stride, v.col_stride, k);
        amx_left{operand}.pack(got.data(), next, 0, 0, lines, pairs);
        CHECK(got == want);
        // As columns, of which a panel has up to 32.
        const matrix_view<TestType> columns{v.data, v.col_stride, v.row_stride};
        const index_t first = lines / 40;
        const index_t some = std::min<index_t>(lines - first, 32);
        right_by_hand(columns, k).pack(want.data(), 0, first, pairs, some);
        amx_right{operand}.pack(got.data(), 0, first, pairs, some);
        CHECK(got == want);
      }
}
#endif

TEST_CASE("the emulation reports errors that a processor would not forgive") {
  using tiles = emulated_amx;
  const tile_shapes whole;
  alignas(64) float memory[256] = {};
  const auto told = [](auto&& f) {
    f();
    return tiles::told();
  };
  CHECK(told([] { tiles::zero<0>(); }) == "used, but not configured");
  CHECK(told([] { tiles::release(); }) == "released, but not configured");
  CHECK(told([&] { tiles::configure(whole), tiles::configure(whole); }) == "configured twice");
  CHECK(tiles::held() == 1);
  CHECK(told([&] { std::thread([&] { tiles::load<1>(memory, 64); }).join(); }) ==
        "used, but not configured");
  CHECK(told([] { tiles::dot<0, 1, 2>(); }) == "");
  tiles::release();
  tile_shapes other = whole;
  other.rows[1] = 8;
  other.rows[7] = 0;
  CHECK(told([&] { tiles::configure(other), tiles::dot<0, 1, 2>(); }) ==
        "tiles whose shapes do not fit");
  CHECK(told([] { tiles::zero<7>(); }) == "a tile without a shape");
  tiles::release();
  other.rows[1] = 17;
  CHECK(told([&] { tiles::configure(other); }) == "a tile that is too large");
  CHECK(told([&] { std::thread([&] { tiles::configure(whole); }).join(); }) ==
        "a thread ended with tiles");
  CHECK(tiles::held() == 0);
}

TEST_CASE("AMX is taken where it is asked for and granted, and nothing is asked otherwise") {
  static int asked;
  asked = 0;
  const auto granted = [] { return ++asked, true; };
  const auto refused = [] { return ++asked, false; };
  const bfloat16_algorithm usual = choose_bfloat16_algorithm("", granted);
  CHECK(usual != bfloat16_algorithm::amx);
  CHECK(choose_bfloat16_algorithm("fma", granted) == bfloat16_algorithm::fma);
  CHECK(choose_bfloat16_algorithm("dot", granted) ==
        (has_dot() ? bfloat16_algorithm::dot : bfloat16_algorithm::fma));
  CHECK(choose_bfloat16_algorithm("AMX", granted) == usual);
  CHECK(asked == 0);
  CHECK(choose_bfloat16_algorithm("amx", refused) == usual);
  CHECK(choose_bfloat16_algorithm("amx", granted) == bfloat16_algorithm::amx);
  CHECK(asked == 2);
}

#if XLA_HAS_AMX
namespace {

/// Has the system refuse what asks for tiles; false where it does not let us.
bool refuse_arch_prctl() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{4, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST_CASE("if the system refuses AMX another algorithm is used") {
  const bfloat16_algorithm usual = choose_bfloat16_algorithm("", &has_amx<>);
  const auto other = [&] {
    return !tiles_granted() && choose_bfloat16_algorithm("amx", &has_amx<>) == usual;
  };
  // By this machine, if its processor or its system does not have it.
  if (!machine_has_tiles()) {
    CHECK_FALSE(has_amx());
    CHECK(other());
  }
  if constexpr (test::sanitized) return;
  // By a filter of system calls.
  CHECK(test::in_child([&] { return !refuse_arch_prctl() || other(); }) == 0);
  // By a small signal stack, unless it was granted before: then such a stack is refused.
  CHECK(test::in_child([&] {
          static char stack[8192];
          stack_t small{};
          small.ss_sp = stack;
          small.ss_size = sizeof stack;
          return sigaltstack(&small, nullptr) != 0 || other();
        }) == 0);
}

TEST_CASE("the processor's tiles multiply as the emulation", "[.instructions]") {
  if (!test::runs_amx()) {
    std::puts("skipped: XLA_TEST_AMX is not 1");
    return;
  }
  const test::restore_threads guard;
  std::mt19937 random(7);
  for (const auto& [m, n, k] : {shape{5, 7, 3},
                                {33, 49, 31},
                                {64, 64, 512},
                                {40, 60, 1030},
                                {300, 20, 130},
                                {1030, 70, 300}})
    for (const float scale : scales)
      for (const int layout : {0, 1, 2, 3})
        for (const int threads : {1, 4}) {
          CAPTURE(m, n, k, scale, layout, threads);
          xla::set_num_threads(threads);
          const among_nan<float> a(m, k, layout, scale, random), b(k, n, 3 - layout, scale, random);
          std::vector<float> want(static_cast<std::size_t>(m * n)), c(want);
          multiply_emulated(m, n, k, a.view, b.view, want.data(), n);
          const auto product = [&, m = m, n = n, k = k] {
            multiply_tiles(m, n, k, a.view, b.view, {c.data(), n}, nullptr);
            return same_numbers(c, want);
          };
          CHECK(product());
          if (m == 300) CHECK(test::in_child(product) == 0);
        }
}
#endif
