// SPDX-License-Identifier: Apache-2.0
// Gradients at infinities, at NaN and where elements are equal, and logarithms of the smallest
// numbers: what PyTorch 2.13 gives, and the departures that op/README.md lists.
#include "support/modes.hpp"
#include "xla/op/derived/activation.hpp"
#include "xla/op/derived/distance_loss.hpp"
#include "xla/op/derived/norm.hpp"
#include "xla/op/median.hpp"
#include "xla/op/sort.hpp"

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float a_nan = std::numeric_limits<float>::quiet_NaN();
using gradients = std::vector<std::vector<float>>;

/// The gradients of the sums of some functions of x, each element on its own.
struct Maps {
  constexpr auto operator()(auto& x) const {
    x.requires_grad_();
    const auto of = [&](const auto& y) { return xla::grad(xla::sum(y), x); };
    const auto zero = xla::zeros_like(x);
    return std::tuple(of(xla::relu(x)), of(xla::elu(x)), of(xla::relu6(x)), of(xla::hardtanh(x)),
                      of(xla::leaky_relu(x)), of(xla::clamp(x, -1, 1)), of(xla::abs(x)),
                      of(xla::maximum(x, zero)), of(xla::minimum(x, zero + 1)),
                      of(xla::maximum(zero + a_nan, x)),
                      of(xla::huber_loss(x, zero, 1, xla::reduction::none)),
                      of(xla::smooth_l1_loss(x, zero, 1, xla::reduction::none)),
                      of(xla::l1_loss(x, zero, xla::reduction::none)));
  }
};

/// Those of functions of all elements.
struct Reductions {
  constexpr auto operator()(auto& x) const {
    x.requires_grad_();
    const auto of = [&](const auto& y) { return xla::grad(xla::sum(y), x); };
    return std::tuple(of(xla::max(x)), of(xla::min(x)), of(xla::logsumexp(x)), of(xla::norm(x)),
                      of(xla::norm(x, 1)), of(xla::norm(x, inf)), of(std::get<0>(xla::topk(x, 2))),
                      of(xla::median(x)));
  }
};

template <class F>
void check(F f, const std::vector<float>& values, const gradients& want) {
  const auto x = xla::tensor(values);
  test::check_modes(f, x);
  auto own = x.detach();
  std::apply(
      [&](const auto&... got) {
        std::size_t i = 0;
        REQUIRE(sizeof...(got) == want.size());
        (
            [&] {
              INFO("function " << i);
              test::check_equal(got, x.sizes(), want[i++], 1e-5);
            }(),
            ...);
      },
      f(own));
}

}  // namespace

TEST_CASE("gradients of functions of each element") {
  const xla::eager_mode_guard eager;
  check(Maps{}, {-inf, -8, -1, -0.f, 0, 1, 6, inf, a_nan},
        {{0, 0, 0, 0, 0, 1, 1, 1, 1},
         {0, 0.000335463f, 0.367879f, 1, 1, 1, 1, 1, 1},
         {0, 0, 0, 0, 0, 1, 0, 0, 1},
         {0, 0, 0, 1, 1, 0, 0, 0, 1},
         {0.01f, 0.01f, 0.01f, 0.01f, 0.01f, 1, 1, 1, 0.01f},
         {0, 0, 1, 1, 1, 1, 0, 0, 0},
         {-1, -1, -1, 0, 0, 1, 1, 1, 0},
         {0, 0, 0, 0.5f, 0.5f, 1, 1, 1, 1},
         {1, 1, 1, 1, 1, 0.5f, 0, 0, 1},
         {1, 1, 1, 1, 1, 1, 1, 1, 1},
         {-1, -1, -1, -0.f, 0, 1, 1, 1, a_nan},
         {-1, -1, -1, -0.f, 0, 1, 1, 1, a_nan},
         {-1, -1, -1, 0, 0, 1, 1, 1, 0}});
}

TEST_CASE("gradients of functions of all elements") {
  const xla::eager_mode_guard eager;
  const float third = 1 / 3.f;
  const std::vector<float> none{0, 0, 0}, thirds{third, third, third}, halves{0.5f, 0.5f},
      unknown{a_nan, a_nan, a_nan};
  check(Reductions{}, {1, 3, 3, 2},
        {{0, 0.5f, 0.5f, 0},
         {1, 0, 0, 0},
         {0.054065f, 0.399486f, 0.399486f, 0.146963f},
         {0.208514f, 0.625543f, 0.625543f, 0.417029f},
         {1, 1, 1, 1},
         {0, 0.5f, 0.5f, 0},
         {0, 1, 1, 0},
         {0, 0, 0, 1}});
  check(Reductions{}, {0, 0, 0}, {thirds, thirds, thirds, none, none, none, {1, 1, 0}, thirds});
  check(Reductions{}, {-inf, -inf},  // of logsumexp 0, where PyTorch has NaN
        {halves, halves, {0, 0}, {a_nan, a_nan}, {-1, -1}, {-0.5f, -0.5f}, {1, 1}, halves});
  check(Reductions{}, {1, inf},
        {{0, 1}, {1, 0}, {0, a_nan}, {0, a_nan}, {1, 1}, {0, 1}, {1, 1}, {1, 0}});
  check(Reductions{}, {inf, inf},
        {halves, halves, {a_nan, a_nan}, {a_nan, a_nan}, {1, 1}, halves, {1, 1}, halves});
  check(Reductions{}, {inf, -inf},
        {{1, 0}, {0, 1}, {a_nan, 0}, {a_nan, a_nan}, {1, -1}, {0.5f, -0.5f}, {1, 1}, {0, 1}});
  check(Reductions{}, {-inf, 1, 2},
        {{0, 0, 1},
         {1, 0, 0},
         {0, 0.268941f, 0.731059f},
         {a_nan, 0, 0},
         {-1, 1, 1},
         {-1, 0, 0},
         {0, 1, 1},
         {0, 1, 0}});
  check(Reductions{},
        {1, a_nan, inf},  // of the largest magnitude not 0, as max has none that equals
        {unknown, unknown, unknown, unknown, {1, 0, 1}, {a_nan, 0, a_nan}, {0, 1, 1}, {0, 1, 0}});
}

TEST_CASE("topk takes the first of equal elements") {
  const xla::eager_mode_guard eager;
  const auto order = [](auto& x) { return std::get<1>(xla::topk(x, 2)); };
  for (const auto& x :
       {xla::tensor<float>({1, 3, 3, 2, 3}), xla::tensor<float>({0, a_nan, 1, a_nan})}) {
    test::check_modes(order, x);
    test::check_equal(order(x), {2}, std::vector<std::int64_t>{1, x.size(0) == 5 ? 2 : 3});
  }
}

TEMPLATE_TEST_CASE("logarithms of numbers below the normal ones", "", float, double) {
  const xla::eager_mode_guard eager;
  using limits = std::numeric_limits<TestType>;
  std::vector<TestType> v{limits::denorm_min(), limits::min() / 3, limits::min(), 0,
                          -limits::min() / 3};
  v.resize(37, limits::min() / 1024);
  const auto x = xla::tensor(v);
  const auto log = [](auto& a) { return xla::log(a); };
  test::check_modes(log, x);
  std::vector<TestType> want;
  for (auto e : v) want.push_back(std::log(e));
  test::check_equal(log(x), x.sizes(), want, 2 * limits::epsilon());
}
