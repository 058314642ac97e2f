// SPDX-License-Identifier: Apache-2.0
#include "xla/run/trace/custom_gradient.hpp"

#include "catch.hpp"
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/compile.hpp"
#include "xla/op/derived/reduction.hpp"
#include "xla/op/elementwise.hpp"
#include "xla/op/exponential.hpp"
#include "xla/op/gather.hpp"
#include "xla/op/reshape.hpp"
#include "xla/op/rounding.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/op/tanh.hpp"
#include "xla/run/trace/checkpoint.hpp"
#include "xla/run/trace/step.hpp"

using xla::Tensor;

namespace own {

struct swish : xla::op::map {
  static constexpr auto name = "own_swish";
  static constexpr bool costly = true;
  static constexpr auto kernel(auto x) { return x / (x.like(1) + (-x).exp()); }
  static constexpr void gradient(auto& g) {
    const auto s = xla::sigmoid(g.in(0));
    g.to(0, g.grad() * (s + g.out() * (1 - s)));
  }
};

struct lerp : xla::op::map {
  static constexpr auto name = "own_lerp";
  static constexpr auto kernel(auto a, auto b, auto t) {
    return (t < t.like(0.5)).select(a + (b - a) * t, b - (b - a) * (t.like(1) - t));
  }
  static constexpr void gradient(auto& g) {
    g.to(0, g.grad() * (1 - g.in(2)));
    g.to(1, g.grad() * g.in(2));
    if (g.needs(2)) g.to(2, g.grad() * (g.in(1) - g.in(0)));
  }
};

/// By one kernel of five inputs and two results: a + 2 b + 3 c + 4 d, and a e.
struct mix {
  static constexpr auto name = "own_mix";
  static constexpr auto kind = xla::op::op_kind::library;
  static constexpr int results = 2;
  static constexpr auto shape_of(const xla::op::shape_rule& r) { return r.in[0]; }
  static constexpr auto shape_of_result(const xla::op::shape_rule& r, int) { return r.input(4); }
  static constexpr void gradient(auto& g) {
    const auto y = g.grad(), z = g.grad_of(1);
    for (int i = 0; i < 4; ++i)
      if (y.defined()) g.to(i, y * (i + 1));
    if (!z.defined()) return;
    g.to(0, y.defined() ? y + z * g.in(4) : z * g.in(4));
    g.to(4, z * g.in(0));
  }
};

}  // namespace own

XLA_ELEMENTWISE_OP(own::swish);
XLA_ELEMENTWISE_OP(own::lerp);
XLA_DETAIL_OP_ID(own::mix);

template <class T>
struct xla::detail::kernel_of<own::mix, T, T> {
  static void run(const kernel_call& call) {
    const auto in = [&](int k) { return static_cast<const T*>(call.in[k]); };
    auto* const second = static_cast<T*>(call.outs[1]);
    for (std::int64_t i = 0; i < count(*call.out_shape); ++i) {
      T sum = 0;
      for (int k = 0; k < 4; ++k) sum += in(k)[i] * static_cast<T>(k + 1);
      static_cast<T*>(call.out)[i] = sum;
      if (second) second[i] = in(0)[i] * in(4)[i];
    }
  }
};

namespace {

// Five inputs, one of them labels, and two results: what is composed of other ops, and the same
// with its gradient written by hand.
constexpr auto composed = [](const auto& x, const auto& w, const auto& b, const auto& labels,
                             const auto& scale) {
  const auto hidden = xla::tanh(x * w + b);
  return std::tuple(hidden, xla::gather(x, 1, xla::unsqueeze(labels, 1)) * scale);
};
constexpr auto five = xla::custom_gradient(
    [](const auto& x, const auto& w, const auto& b, const auto& labels, const auto& scale) {
      const auto [hidden, picked] = composed(x, w, b, labels, scale);
      return xla::save_for_backward(std::tuple(hidden, picked), x, w, labels, scale, hidden);
    },
    [](const auto& saved, const auto& g, const auto& g_picked) {
      const auto& [x, w, labels, scale, hidden] = saved;
      const auto index = xla::unsqueeze(labels, 1);
      const auto inner = g * (1 - hidden * hidden);
      return std::tuple(xla::scatter_add(inner * w, 1, index, g_picked * scale),
                        xla::sum(inner * x, {0}), xla::sum(inner, {0}), nullptr,
                        xla::sum(g_picked * xla::gather(x, 1, index)));
    });

constexpr auto straight_through = xla::custom_gradient(
    [](const auto& x) { return xla::round(x); }, [](const auto&, const auto& g) { return g; });

const auto labels = [] { return xla::tensor<std::int64_t>({1, 3, 0}); };
template <class T>
struct inputs {
  Tensor<T, 2> x;
  Tensor<T, 1> w, b;
  Tensor<T, 0> scale;
};
template <class T>
inputs<T> make_inputs() {
  const xla::eager_mode_guard eager;
  xla::manual_seed(3);
  return {xla::randn<T>({3, 4}), xla::randn<T>({4}), xla::randn<T>({4}), xla::tensor(T(0.75))};
}

constexpr auto all_of = [](const auto& results) {
  const auto& [hidden, picked] = results;
  return test::weighted_sum(hidden) + xla::sum(picked * picked);
};
constexpr auto train = [](auto& x, auto& w, auto& b, auto& scale, auto& classes) {
  const auto loss = all_of(five(x, w, b, classes, scale));
  loss.backward();
  return loss;
};

template <class T, xla::Passes Wanted = xla::Passes{}>
void check_in_modes(auto f) {
  const inputs<T> in = make_inputs<T>();
  test::check_modes<Wanted>(f, test::parameter(in.x), test::parameter(in.w), test::parameter(in.b),
                            test::parameter(in.scale), labels());
}

/// The values and gradients of f's loss, eagerly.
template <class F>
std::vector<std::vector<double>> gradients(F f) {
  const inputs<double> in = make_inputs<double>();
  const xla::eager_mode_guard eager;
  auto x = test::parameter(in.x);
  auto w = test::parameter(in.w), b = test::parameter(in.b);
  auto scale = test::parameter(in.scale);
  const auto loss = all_of(f(x, w, b, labels(), scale));
  loss.backward();
  return {{loss.item()},
          x.grad().to_vector(),
          w.grad().to_vector(),
          b.grad().to_vector(),
          scale.grad().to_vector()};
}

}  // namespace

TEST_CASE("a function of five inputs and two results has its own gradient in every mode") {
  check_in_modes<float>(train);
  check_in_modes<double, xla::tags::verified & xla::tags::without<"simplify">>(train);
}

TEST_CASE("its gradients are those of finite differences and of the composition") {
  const inputs<double> in = make_inputs<double>();
  test::check_gradient([](const auto& x, const auto& w, const auto& b,
                          const auto& scale) { return all_of(five(x, w, b, labels(), scale)); },
                       in.x, in.w, in.b, in.scale);
  const auto own = gradients(five), expected = gradients(composed);
  for (std::size_t i = 0; i < own.size(); ++i)
    for (std::size_t k = 0; k < own[i].size(); ++k)
      CHECK(own[i][k] == Approx(expected[i][k]).epsilon(1e-12));
}

TEST_CASE("a result that is not used has a gradient of zeros") {
  check_in_modes<float>([](auto& x, auto& w, auto& b, auto& scale, auto& classes) {
    x.zero_grad();  // to an absent gradient a compiled step adds, and 0 + -0 is another zero
    w.zero_grad();
    const auto [hidden, picked] = five(x, w, b.detach(), classes, scale);
    const auto loss = test::weighted_sum(picked);
    loss.backward();
    return loss;
  });
  const xla::eager_mode_guard eager;
  const inputs<double> in = make_inputs<double>();
  auto w = test::parameter(in.w);
  const auto [hidden, picked] = five(in.x, w, in.b, labels(), in.scale);
  (xla::sum(picked) + xla::sum(w)).backward();
  CHECK(w.grad().to_vector() == std::vector<double>(4, 1.0));
}

TEST_CASE("inputs that need no gradient get none, and without any nothing is recorded") {
  constexpr auto partly = [](auto& x, auto& w, auto& b, auto& scale, auto& classes) {
    const auto loss = all_of(five(x.detach(), w, b.detach(), classes, scale));
    loss.backward();
    return loss;
  };
  check_in_modes<float>(partly);
  const xla::eager_mode_guard eager;
  const inputs<float> in = make_inputs<float>();
  const auto [hidden, picked] = five(in.x, in.w, in.b, labels(), in.scale);
  CHECK(!hidden.requires_grad());
  auto w = test::parameter(in.w);
  CHECK(!xla::no_grad([&] {
           return std::get<0>(five(in.x, w, in.b, labels(), in.scale));
         }).requires_grad());
}

TEST_CASE("it is computed again within checkpoint(), with the same numbers") {
  constexpr auto twice = [](auto& x, auto& w, auto& b, auto& scale, auto& classes) {
    const auto block = [](const auto& h, const auto& w, const auto& b, const auto& classes,
                          const auto& scale) {
      const auto [hidden, picked] = five(h * 2, w, b, classes, scale);
      return xla::sigmoid(hidden) + picked;
    };
    const auto h = xla::checkpoint(block, x, w, b, classes, scale);
    const auto loss = test::weighted_sum(xla::checkpoint(block, h, w, b, classes, scale));
    loss.backward();
    return loss;
  };
  constexpr auto kept = [](auto& x, auto& w, auto& b, auto& scale, auto& classes) {
    const auto block = [&](const auto& h) {
      const auto [hidden, picked] = five(h * 2, w, b, classes, scale);
      return xla::sigmoid(hidden) + picked;
    };
    const auto loss = test::weighted_sum(block(block(x)));
    loss.backward();
    return loss;
  };
  check_in_modes<float>(twice);
  const inputs<float> in = make_inputs<float>();
  const auto run = [&](auto f) {
    return test::run_mode<test::mode::eager>(f, test::parameter(in.x), test::parameter(in.w),
                                             test::parameter(in.b), test::parameter(in.scale),
                                             labels());
  };
  CHECK(run(twice).difference(run(kept)) == "");
}

TEST_CASE("with create_graph its gradients have gradients, through inputs and results it saved") {
  constexpr auto penalty = [](auto& x, auto& w, auto& b, auto& scale, auto& classes) {
    const auto slopes = xla::grad(all_of(five(x, w, b, classes, scale)), std::tie(x, w, scale),
                                  {.create_graph = true});
    const auto loss = xla::sum(std::get<0>(slopes) * std::get<0>(slopes)) +
                      xla::sum(xla::exp(std::get<1>(slopes))) + std::get<2>(slopes);
    loss.backward();
    return loss;
  };
  constexpr auto expected = [](auto& x, auto& w, auto& b, auto& scale, auto& classes) {
    const auto slopes = xla::grad(all_of(composed(x, w, b, classes, scale)), std::tie(x, w, scale),
                                  {.create_graph = true});
    const auto loss = xla::sum(std::get<0>(slopes) * std::get<0>(slopes)) +
                      xla::sum(xla::exp(std::get<1>(slopes))) + std::get<2>(slopes);
    loss.backward();
    return loss;
  };
  check_in_modes<double>(penalty);
  const inputs<double> in = make_inputs<double>();
  const xla::eager_mode_guard eager;
  const auto run = [&](auto f) {
    auto x = test::parameter(in.x);
    auto w = test::parameter(in.w), b = test::parameter(in.b);
    auto scale = test::parameter(in.scale);
    auto classes = labels();
    const double loss = f(x, w, b, scale, classes).item();
    std::vector<double> all{loss};
    for (const auto& g : {x.grad().to_vector(), w.grad().to_vector(), b.grad().to_vector(),
                          scale.grad().to_vector()})
      all.insert(all.end(), g.begin(), g.end());
    return all;
  };
  const auto own = run(penalty), other = run(expected);
  for (std::size_t i = 0; i < own.size(); ++i) CHECK(own[i] == Approx(other[i]));
}

TEST_CASE("one tensor in and out, without anything saved") {
  constexpr auto body = [](auto& x, auto& w) {
    const auto loss = xla::sum(straight_through(x * 1.5) * w);
    loss.backward();
    return std::tuple(loss, straight_through(w));
  };
  const inputs<float> in = make_inputs<float>();
  test::check_modes(body, test::parameter(in.x), test::parameter(in.w));
  const xla::eager_mode_guard eager;
  auto x = test::parameter(in.x);
  xla::sum(straight_through(x)).backward();
  CHECK(x.grad().to_vector() == std::vector<float>(12, 1.0f));
}

TEST_CASE("a gradient of another shape than the input's is refused with both") {
  constexpr auto wrong = xla::custom_gradient(
      [](const auto& x, const auto& w) { return xla::save_for_backward(x * w, x, w); },
      [](const auto& saved, const auto& g) {
        const auto& [x, w] = saved;
        return std::tuple(g * w,
                          xla::sum(g * x, {0}, xla::keepdim).index(xla::Slice(), xla::Slice(1, 3)));
      });
  const xla::eager_mode_guard eager;
  auto w = test::parameter(xla::ones<float>({1, 4}));
  const auto y = wrong(xla::ones<float>({3, 4}), w);
  CHECK_THROWS_WITH(
      xla::sum(y).backward(),
      test::contains("custom_gradient: backward returned a gradient of shape (1, 2) for input "
                     "1, whose shape is (1, 4)"));
}

TEST_CASE("a custom elementwise op runs in every mode, with its gradient") {
  constexpr auto body = [](auto& x, auto& w) {
    const auto y = xla::elementwise<own::lerp>(xla::elementwise<own::swish>(x * 2) + 1, w,
                                               xla::elementwise<own::swish>(w));
    xla::sum(y * y).backward();
    return y;
  };
  const inputs<float> in = make_inputs<float>();
  test::check_modes(body, test::parameter(in.x), test::parameter(in.w));
  const inputs<double> exact = make_inputs<double>();
  test::check_gradient([](const auto& x) { return xla::elementwise<own::swish>(x); }, exact.x);
  test::check_gradient([](const auto& a, const auto& b,
                          const auto& t) { return xla::elementwise<own::lerp>(a, b, t); },
                       exact.x, exact.w, exact.b);
  const xla::eager_mode_guard eager;
  const auto narrow = xla::cast<xla::bfloat16>(in.x);
  CHECK(
      xla::elementwise<own::swish>(narrow).to_vector() ==
      xla::cast<xla::bfloat16>(xla::elementwise<own::swish>(xla::cast<float>(narrow))).to_vector());
}

TEST_CASE("a kernel may have five inputs and two results, in every mode") {
  constexpr auto mix = []<class T>(const Tensor<T, 1>& a, const auto&... x) {
    using One = Tensor<T, 1>;
    return xla::detail::apply_several<own::mix, T, One, One>(
        xla::detail::unknown_caller, xla::detail::plain, a, static_cast<const One&>(x)...);
  };
  constexpr auto both = [](const auto& a, const auto& b, const auto& c) {
    const auto [y, z] = decltype(mix)()(a * 2, b, c, c * c, b * c);
    return xla::tanh(y) + z * z;
  };
  constexpr auto one = [](const auto& a, const auto& b, const auto& c) {
    const auto [y, z] = decltype(mix)()(a * 2, b, c, c * c, b * c);
    return xla::tanh(z);
  };
  constexpr auto train = [](auto& a, auto& b, auto& c) {
    const auto first = decltype(both)()(a, b, c);
    const auto loss =
        xla::sum(first) +
        xla::sum(xla::checkpoint([](const auto&... x) { return decltype(one)()(x...); }, a, b, c) *
                 xla::checkpoint([](const auto&... x) { return decltype(both)()(x...); }, a, c, b));
    loss.backward();
    return std::tuple(loss, first);
  };
  const inputs<double> in = make_inputs<double>();
  test::check_gradient(both, in.w, in.b, in.w * 0.5);
  test::check_gradient(one, in.w, in.b, in.w * 0.5);
  test::check_modes(train, test::parameter(in.w), test::parameter(in.b),
                    test::parameter(xla::tensor<double>({1, -2, 0.5, 3})));
}

TEST_CASE("and is fused with the ops around it") {
  constexpr auto body = [](auto& x, auto& w) {
    return xla::elementwise<own::swish>(x * 2 + w) - 1;
  };
  using program = xla::detail::static_program<decltype(body), Tensor<float, 2>&, Tensor<float, 1>&>;
  CHECK(program::size.steps == 1);
  CHECK(program::size.keys == 1);
}
