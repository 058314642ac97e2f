// SPDX-License-Identifier: Apache-2.0
// Values lie as ops wish; what a program means does not depend on it.
#include <algorithm>
#include <string>

#include "support/layouts.hpp"
#include "support/modes.hpp"
#include "xla/xla.hpp"

using test::numbers;
using xla::Tensor;

namespace {

/// x * (1 + c) for image n, channel c, row h and column w, and the last two exchanged with the
/// channels where it finds them innermost; so that a wrong order gives wrong numbers.
struct scaled_channels {
  static constexpr auto name = "scaled_channels";
  static constexpr auto kind = xla::detail::op_kind::library;
  static constexpr xla::detail::layout nhwc{0, 2, 3, 1};
  struct attributes {
    bool channels_last = false;
    XLA_ATTRIBUTES(channels_last)
  };
  static constexpr xla::detail::shape shape_of(const xla::detail::shape_rule& r) { return r.in[0]; }
  static constexpr void arrange(xla::detail::op_record& n, xla::detail::layout* inputs,
                                xla::detail::layout& result) {
    n.set<scaled_channels>({.channels_last = true});
    inputs[0] = result = nhwc;
  }
};

template <class T>
constexpr Tensor<T, 4> scale_channels(const Tensor<T, 4>& x) {
  return xla::detail::apply<scaled_channels, T, T, 4>(xla::detail::plain, x);
}

int times(const std::string& word, const std::string& text) {
  int n = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
  return n;
}

}  // namespace

XLA_DETAIL_OP_ID(scaled_channels);

template <class Out, class T>
struct xla::detail::kernel_of<scaled_channels, Out, T> {
  static void run(const kernel_call& call) {
    const shape& s = call.in_shapes[0];
    const bool last = call.attributes<scaled_channels>().channels_last;
    const std::int64_t channels = last ? s[3] : s[1], inner = last ? 1 : s[2] * s[3];
    for (std::int64_t i = 0; i < count(s); ++i)
      static_cast<T*>(call.out)[i] =
          static_cast<const T*>(call.in[0])[i] * static_cast<T>(1 + i / inner % channels);
  }
};

TEST_CASE("what ops wish for goes on through what is elementwise, and copies stand at the ends") {
  const auto net = [](auto& x, auto& bias, auto& rows) {
    const auto a = scale_channels(x);
    const auto b = xla::relu(a + reshape(bias, {-1, 1, 1})) * 0.5;
    const auto c = scale_channels(b) + a;
    const auto d = where(c > 0.25, c, rows);
    return std::tuple(xla::flatten<1>(scale_channels(d)), b);
  };
  const auto x = numbers<float>({2, 3, 4, 5});
  const auto bias = numbers<float>({3}, 1);
  const auto rows = numbers<float>({4, 5}, 2);
  test::check_modes<xla::verified>(net, x, bias, rows);
  test::check_modes<xla::verified>(net, numbers<float>({1, 1, 1, 7}), numbers<float>({1}),
                                   numbers<float>({1, 7}));
  const auto graph = xla::compile(net).graph("layouts", x, bias, rows);
  INFO(graph);
  // Of x and of both results; bias and rows, whose axes keep their order, only get others.
  CHECK(times(" = copy(", graph) == 3);
  CHECK(times("){1,3,2,0}", graph) == 12);

  const auto plain = xla::compile<xla::without<"layouts">>(net);
  CHECK(times("copy(", plain.graph("late", x, bias, rows)) == 0);
}

namespace {

/// Ranks, element types, broadcasts and sums of all kinds.
struct mixture {
  template <class W>
  constexpr auto operator()(W& w, Tensor<float, 3>& x, Tensor<double, 2>& y,
                            Tensor<std::int64_t, 1>& i) const {
    const auto h = tanh(x * w + 0.5) - sum(x, {2}, xla::keepdim) * 0.125;
    const auto d = xla::cast<double>(h) * y + xla::cast<double>(i);
    const auto big = where(d > 0 && xla::cast<bool>(i), d, y);
    const auto e = h.detach() * max(h, {2}, xla::keepdim) + softmax(h);
    (sum(e * e * w) * 0.01).backward();
    x += e;
    w.copy_(w * 0.5 + sum(e, {0, 1}));
    const auto six = xla::unsqueeze(xla::unsqueeze(xla::unsqueeze(e, 0), 2), 0);
    return std::tuple(xla::cast<float>(big) + e, mean(d, {0, 2}), six * 2 + six, i * 3 - i, i > 1,
                      gather(e, 2, xla::cast<std::int64_t>(e > 0)));
  }
};

}  // namespace

TEST_CASE("a capture that copies make larger has room for them") {
  const auto chain = [](auto& x, auto& y) {
    auto h = x;
    for (int i = 0; i < 100; ++i) h = tanh(h) * y;
    return std::tuple(test::shuffled(h, 3));
  };
  test::check_modes<xla::verified>(chain, numbers<float>({2, 3}), numbers<float>({2, 3}, 1));
}

TEST_CASE("any order of any value gives the same bits") {
  const xla::eager_mode_guard eager;
  const auto w = test::parameter(numbers<float>({5}, 1));
  const auto y = numbers<double>({4, 5});
  const auto i = numbers<std::int64_t>({5});
  for (const std::int64_t n : {3, 1}) {
    const auto x = numbers<float>({n, 4, 5}) * 0.25;
    test::check_modes<xla::verified>(test::fixed_shuffled_program<1, mixture>{}, w, x, y, i);
    const auto want = test::run_mode<test::mode::eager>(mixture{}, w, x, y, i);
    for (unsigned seed = 0; seed < 50; ++seed) {
      INFO("seed " << seed);
      const test::shuffled_program<mixture> f{{}, seed};
      REQUIRE(test::run_mode<test::mode::traced>(f, w, x, y, i).difference(want) == "");
    }
  }
}
