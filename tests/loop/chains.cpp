// SPDX-License-Identifier: Apache-2.0
// Bodies of numbers, whose maps are one function: what stays in registers, what places and types
// follow one another, how pointers move on.
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "support/modes.hpp"
#include "xla/functions.hpp"
#include "xla/loop.hpp"

using test::numbers;

namespace {

template <class T>
using number = xla::Tensor<T, 0>;

/// Carries of many types, which change places and decide about each other; the body has maps in
/// float, in double and in int64, and kept are some of their values.
constexpr auto mixed = [](const auto& xs, const auto& ys, const auto& rounded) {
  using state = std::tuple<number<double>, number<double>, number<float>, number<std::int64_t>,
                           number<bool>, number<xla::bfloat16>>;
  const auto step = [](const state& s, const auto& at) {
    const auto& [a, b, f, n, up, h] = s;
    const auto& [x, y] = at;
    const auto c = xla::where(up, a * x + b, b - a * 0.5);
    const auto g = xla::tanh(f * y + 0.25f);
    const auto k = xla::cast<xla::bfloat16>(xla::cast<float>(h) * y + g);
    const auto more = n * 3 + 1;
    const auto d = xla::cast<double>(g) * c + xla::cast<double>(more);
    return std::pair(state{b, xla::sin(d), g, more - n, c > b, k}, std::tuple(d, g > y, more, k));
  };
  const auto first = xla::select(xs, 0, 0);
  const auto second = xla::select(ys, 0, 0);
  const state init{first,       first * 2.0,
                   second,      xla::tensor<std::int64_t>(1),
                   first > 0.0, xla::select(rounded, 0, 0)};
  return xla::scan(step, init, std::tuple(xs, ys), {.reverse = true});
};

/// Several regions forward and back, between which values stay in registers.
constexpr auto many = [](auto& w, const auto& xs) {
  constexpr int n = 16;
  using state = std::array<number<float>, n>;
  const auto step = [&](const state& s, const number<float>& x) {
    state next = s;
    for (int i = 0; i < n; ++i) next[i] = xla::tanh(s[i] * w + s[(i + 1) % n] * 0.5f + x);
    return std::pair(next, next[n / 2]);
  };
  state init;
  for (int i = 0; i < n; ++i) init[i] = w * (0.1f * static_cast<float>(i));
  const auto [last, path] = xla::scan(step, init, xs);
  auto loss = xla::sum(path * path) + last[3];
  loss.backward();
  return std::tuple(loss, last);
};

/// The carries of every seventh step are kept, and the steps after it run again.
template <bool Reverse>
constexpr auto kept_apart = [](auto& w, const auto& xs) {
  const auto step = [&](const auto& s, const auto& x) {
    const auto& [a, b] = s;
    const auto next = a * w + b * x;
    return std::pair(std::pair(b - next * 0.25, next), a);
  };
  const number<double> one = xla::ones_like(xla::select(xs, 0, 0));
  const auto [last, path] =
      xla::scan(step, std::pair(one, one * 2.0), xs, {.reverse = Reverse, .checkpoint_every = 7});
  auto loss = xla::sum(path * path) + last.first;
  loss.backward();
  return std::tuple(loss, last, path);
};

/// As long as a condition holds; the carries change places.
constexpr auto grown = [](const auto& from) {
  return xla::while_loop([](const auto& c) { return std::get<0>(c) < 1000.0; },
                         [](const auto& c) {
                           const auto& [x, y, count] = c;
                           return std::tuple(xla::maximum(x, y) * 1.5 + 1.0, x, count + 1);
                         },
                         std::tuple(from, from * 2.0, xla::tensor<std::int64_t>(0)));
};
/// The body reads the number of its step.
constexpr auto counted = [](const auto& x, const auto& rows) {
  const auto step = [&](const auto& i, const auto& c) {
    return std::pair(c.second, c.first * x + xla::cast<double>(i * i));
  };
  return xla::fori_loop(0, rows.size(0), step, std::pair(x, x * 2.0));
};

template <class F, class... A>
constexpr int chains = xla::detail::chains_of<xla::detail::static_program<F, A&...>::result>::count;

}  // namespace

TEST_CASE("bodies of numbers have chains, which give the same bits in every mode") {
  static_assert(chains<const decltype(mixed), xla::Tensor<double, 1>, xla::Tensor<float, 1>,
                       xla::Tensor<xla::bfloat16, 1>> >= 1);
  for (int steps : {1, 2, 3, 4, 9})
    test::check_modes(mixed, numbers<double>({steps}), numbers<float>({steps}),
                      xla::cast<xla::bfloat16>(numbers<float>({steps})));
}

TEST_CASE("bodies of several regions are a chain, and so are their gradients") {
  static_assert(chains<const decltype(many), xla::Parameter<float, 0>, xla::Tensor<float, 1>> >= 2);
  for (int steps : {1, 3, 6})
    test::check_modes(many, test::parameter(xla::tensor(0.7f)), numbers<float>({steps}));
}

TEST_CASE("chains of loops with checkpoints run several steps in a call") {
  for (int steps : {1, 6, 7, 8, 9, 10, 13, 14, 17, 18, 30}) {
    INFO(steps << " steps");
    test::check_modes(kept_apart<false>, test::parameter(xla::tensor(0.7)),
                      numbers<double>({steps}));
    test::check_modes(kept_apart<true>, test::parameter(xla::tensor(0.7)),
                      numbers<double>({steps}));
  }
}

TEST_CASE("chains run as long as a condition holds, and read the number of their step") {
  for (double from : {2000.0, 900.0, 500.0, 100.0, 1.0})
    test::check_modes(grown, xla::tensor(from));
  for (int steps : {1, 2, 3, 4, 5, 8})
    test::check_modes(counted, xla::tensor(0.7), numbers<float>({steps}));
}
