// SPDX-License-Identifier: Apache-2.0
// Stacks that steps alone read, and those of which slices alone are read, are not made: steps read
// and write the rows where they are. The numbers are those of stacks.
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/xla.hpp"

using test::numbers;

namespace {

constexpr std::int64_t side = 40;
constexpr std::int64_t bytes_of_stack = 3 * side * side * 4;

auto square_of(unsigned seed) { return test::parameter(numbers<float>({side, side}, seed) * 0.1f); }

/// Bytes of the memory that a call takes for itself, three parameters and x given.
template <class F>
std::int64_t memory_of(const F& f) {
  auto a = square_of(1), b = square_of(2), c = square_of(3);
  auto x = numbers<float>({2, side}, 4);
  return xla::compile(f).memory_analysis(a, b, c, x).arena;
}
template <class F>
void check(const F& f) {
  test::check_modes<xla::tags::verified>(f, square_of(1), square_of(2), square_of(3),
                                         numbers<float>({2, side}, 4));
}

/// Each of the tensors in turn, in an inner loop, too.
constexpr auto product_of_all = [](const auto& all, const auto& x) {
  const auto step = [](const auto& h, const auto& w) {
    const auto inner = [&](const auto&, const auto& k) { return xla::tanh(matmul(k, w)); };
    return std::pair(xla::fori_loop(0, 2, inner, h), sum(h, {0}));
  };
  return xla::scan(step, x, all);
};

constexpr auto training = [](auto& a, auto& b, auto& c, auto& x) {
  a.zero_grad();
  b.zero_grad();
  c.zero_grad();
  const auto [last, ys] = product_of_all(xla::stack({a * 1, b * 1, c * 1}), x);
  const auto loss = sum(last * last) + sum(ys);
  loss.backward();
  for (auto* p : {&a, &b, &c}) p->copy_(p->detach() - 0.1f * p->grad());
  return loss;
};
/// The stack is read otherwise, too.
constexpr auto read_whole = [](auto& a, auto& b, auto& c, auto& x) {
  const auto all = xla::stack({a, b, c});
  const auto [last, ys] = product_of_all(all, x);
  return std::tuple(sum(last), ys, sum(all, {1, 2}));
};
/// One tensor twice, the last step first.
constexpr auto backwards = [](auto& a, auto& b, auto&, auto& x) {
  const auto step = [](const auto& h, const auto& w) {
    return std::pair(xla::tanh(matmul(h, w)), h);
  };
  const auto [last, ys] = xla::scan(step, x, xla::stack({a, b, a}), {.reverse = true});
  return std::tuple(last, select(ys, 0, 0), select(ys, 0, 2));
};
/// The values that a step passes on are stacked, and rows of the stack are read: none twice, one
/// twice, parts.
template <int Kind>
struct rows {
  constexpr auto operator()(auto& a, auto& b, auto& c, auto& x) const {
    const auto step = [](const auto& h, const auto& w) {
      const auto next = xla::tanh(matmul(h, w));
      return std::pair(next, next);
    };
    const auto [last, ys] = xla::scan(step, x, xla::stack({a, b, c}));
    const auto first = select(ys, 0, 0), third = select(ys, 0, 2);
    if constexpr (Kind == 0) return std::tuple(last, first + third);
    else if constexpr (Kind == 1) return std::tuple(last, third, first, select(ys, 0, 2) * first);
    else return std::tuple(first, xla::slice(ys, 0, 1, 3), ys);
  }
};

}  // namespace

TEST_CASE("tensors that a loop reads one by one are not stacked, nor are their gradients") {
  check(training);
  CHECK(memory_of(training) < bytes_of_stack);
}

TEST_CASE("a stack that something else reads is made") {
  check(read_whole);
  CHECK(memory_of(read_whole) >= bytes_of_stack);
}

TEST_CASE("one tensor in several rows, the last step first") { check(backwards); }

TEST_CASE("rows of what steps make") {
  check(rows<0>());
  check(rows<1>());
  check(rows<2>());
}
