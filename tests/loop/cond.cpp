// SPDX-License-Identifier: Apache-2.0
#include "xla/loop.hpp"

#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/derived/any_all.hpp"
#include "xla/op/derived/softmax.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/tanh.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/run/trace/autocast.hpp"
#include "xla/run/trace/checkpoint.hpp"
#include "xla/run/trace/custom_gradient.hpp"
#include "xla/run/trace/step.hpp"

using test::numbers;

namespace {

/// So that a gradient of -0 stays one: a compiled function adds to 0 what it finds none of.
template <class... P>
constexpr void forget(P&... p) {
  (p.zero_grad(), ...);
}

struct experts {
  xla::nn::Linear first{4, 4}, second{4, 4};
  XLA_MODULE(first, second)
};

const auto both = {-1.0f, 1.0f};

constexpr auto step = [](auto& m, auto& opt, const auto& x) {
  const auto wrong = m.second(xla::tanh(m.first(x))) - x;
  auto loss = xla::mean(wrong * wrong);
  loss.backward();
  opt.step();
  opt.zero_grad();
  return loss.detach();
};

/// f(model, optimizer, x…) leaves the same in every mode.
template <class F, class... X>
void check_training(const F& f, const X&... x) {
  const auto trained = [&](auto&& run, bool eager) {
    const xla::eager_mode_guard mode(eager);
    xla::manual_seed(11);
    experts m;
    xla::optim::AdamW opt{m, {.lr = 0.02f}};
    std::tuple<X...> copies(x...);
    test::snapshot s;
    for (int call = 0; call < 2; ++call)
      s.add(std::apply([&](auto&... c) { return run(m, opt, c...); }, copies));
    s.add(m);
    opt.visit_state([&](auto& kept, const auto&) { s.add(kept); });
    return s;
  };
  auto compiled = xla::compile(f);
  const auto want = trained(f, true);
  CHECK(trained(f, false).difference(want) == "");
  CHECK(trained(compiled, false).difference(want) == "");
}

}  // namespace

TEST_CASE("cond() has the same bits in every mode, whichever branch is taken") {
  auto choose = [](auto& p, auto& x, auto& w) {
    const auto around = x * 2.0f;
    return xla::cond(
        sum(p) > 0, [&](const auto& a) { return matmul(a, w) + around; },
        [&](const auto& a) { return tanh(a) - w; }, x);
  };
  for (float p : both)
    for (std::int64_t n : {1, 3, 17})
      test::check_modes(choose, xla::full<float>({2}, p), numbers<float>({n, n}),
                        numbers<float>({n, n}));
}

TEST_CASE("branches return trees: whole numbers, truths, constants, and what is around them") {
  auto trees = [](auto& p, auto& n, auto& d) {
    return xla::cond(
        any(p > 0.5f),
        [&] {
          return std::tuple(std::array{n * 2, n}, n > 1, d, xla::ones_like(d));
        },
        [&] {
          return std::tuple(std::array{n, n + 3}, n < 2, xla::zeros_like(d), d * 0.5);
        });
  };
  for (float p : both)
    test::check_modes(trees, xla::full<float>({2}, p), numbers<std::int64_t>({5}),
                      numbers<double>({2, 3}));
}

TEST_CASE("a branch that is not taken does not run") {
  auto look_up = [](auto& table, auto& place) {
    const auto inside = any(place < 4);
    return xla::cond(
        inside, [&] { return sum(index_select(table, 0, place)); }, [&] { return sum(table); });
  };
  const auto table = numbers<float>({4, 3});
  for (std::int64_t place : {1, 4})  // in the other branch 4 is refused
    test::check_modes(look_up, table, xla::full<std::int64_t>({1}, place));
  auto wrong = xla::compile([](auto& all, auto& at) {
    return xla::cond(
        any(at < 4), [&] { return sum(all); }, [&] { return sum(index_select(all, 0, at)); });
  });
  auto rows = table;
  auto at = xla::full<std::int64_t>({1}, 4);
  CHECK_THROWS_WITH(wrong(rows, at), Catch::Contains("4"));
}

TEST_CASE("gradients go through the branch that is taken, also to layers") {
  auto train = [](auto& p, auto& m, auto& x) {
    forget(x);
    const auto around = x * 2.0f;
    const auto y = xla::cond(
        sum(p) > 0, [&](const auto& a) { return m.second(m.first(a) * around) + around; },
        [&](const auto& a) { return tanh(m.first(a + m.second(around))) - x; }, x);
    const auto loss = sum(y * y * x);
    loss.backward();
    return loss;
  };
  for (float p : both)
    test::check_modes(train, xla::full<float>({2}, p), experts(),
                      test::parameter(numbers<float>({3, 4})));
}

TEST_CASE("a tensor that only the other branch reads gets a zero gradient, in eager mode none") {
  const auto train = [](auto& p, auto& a, auto& b) {
    const auto y = xla::cond(
        sum(p) > 0, [&] { return a * 2.0f; }, [&] { return b * 3.0f; });
    sum(y).backward();
    return y;
  };
  auto compiled = xla::compile(train);
  for (const auto mode : {test::mode::eager, test::mode::traced, test::mode::compiled}) {
    const bool eager = mode == test::mode::eager;
    const xla::eager_mode_guard as_told(eager);
    auto p = xla::ones<float>({2});
    auto a = test::parameter(xla::ones<float>({2})), b = test::parameter(xla::ones<float>({2}));
    if (mode == test::mode::compiled) compiled(p, a, b);
    else train(p, a, b);
    CHECK(a.grad().to_vector() == std::vector<float>{2, 2});
    REQUIRE(b.grad().defined() == !eager);
    if (!eager) CHECK(b.grad().to_vector() == std::vector<float>{0, 0});
  }
}

TEST_CASE("cond() in loops, loops in its branches, and their gradients") {
  auto train = [](auto& w, auto& xs) {
    forget(w, xs);
    const auto body = [&](const auto& c, const auto& x) {
      const auto twice = w * 2.0f;
      const auto steps = [&](const auto& a, const auto& row) {
        const auto next = tanh(a * row + twice);
        return std::pair(next, next * w);
      };
      const auto next = xla::cond(
          sum(x * c) > 0,
          [&] {
            const auto [last, ys] = xla::scan(steps, c, xs);
            return last * x + sum(ys, {0});
          },
          [&] {
            return xla::cond(
                sum(x) > 0, [&] { return c * x + w; }, [&] { return relu(w - x) * c; });
          });
      return std::pair(tanh(next), next * x);
    };
    const auto [last, ys] = xla::scan(body, w * 0.5f, xs, {.reverse = true});
    const auto loss = sum(last * w) + sum(ys);
    loss.backward();
    return loss;
  };
  for (std::int64_t steps : {1, 2, 7})
    test::check_modes(train, test::parameter(numbers<float>({5})),
                      test::parameter(numbers<float>({steps, 5})));
}

TEST_CASE("cond() in checkpoints, checkpoints in it, and without gradients") {
  auto train = [](auto& p, auto& w, auto& x) {
    forget(w, x);
    const auto inner = [&](const auto& b) { return tanh(b * w); };
    const auto block = [&](const auto& a) {
      return xla::cond(
          sum(p) > 0, [&] { return xla::checkpoint(inner, a); }, [&] { return a * w * w; });
    };
    const auto y = xla::checkpoint(block, x * 2.0f);
    const auto z = xla::no_grad(x, [&] { return block(x); });
    const auto loss = sum(y * z);
    loss.backward();
    return std::tuple(loss, y);
  };
  for (float p : both)
    test::check_modes(train, xla::full<float>({2}, p), test::parameter(numbers<float>({5})),
                      test::parameter(numbers<float>({5})));
}

TEST_CASE("cond() in autocast, and functions with a gradient of their own in its branches") {
  auto train = [](auto& p, auto& m, auto& x) {
    forget(x);
    const auto scaled = xla::custom_gradient(
        [](const xla::Tensor<float, 2>& a, const xla::Tensor<float, 2>& b) {
          return xla::save_for_backward(a * b, a, b);
        },
        [](const auto& saved, const auto& g) {
          return std::tuple(g * std::get<1>(saved) * 2.0f, g * std::get<0>(saved));
        });
    const auto y = xla::cond(
        sum(p) > 0, [&] { return scaled(m.first(x), m.second(x)); },
        [&] { return m.second(scaled(x, m.first(x))); });
    const auto loss = sum(y * y);
    loss.backward();
    return loss;
  };
  auto rounded = xla::autocast(train);
  for (float p : both) {
    const auto x = test::parameter(numbers<float>({3, 4}));
    test::check_modes(train, xla::full<float>({2}, p), experts(), x);
    test::check_modes(rounded, xla::full<float>({2}, p), experts(), x);
  }
}

TEST_CASE("a choice in each of many steps, over many elements") {
  auto train = [](auto& w, auto& xs) {
    forget(w, xs);
    const auto body = [&](const auto& c, const auto& x) {
      const auto next = xla::cond(
          sum(x) > 0, [&] { return tanh(matmul(c, w)) + x; }, [&] { return c * x; });
      return std::pair(next, sum(next, {1}));
    };
    const auto [last, ys] = xla::scan(body, xla::ones_like(select(xs, 0, 0)), xs);
    const auto loss = mean(last * last) + sum(ys);
    loss.backward();
    return loss;
  };
  test::check_modes(train, test::parameter(numbers<float>({70, 70}) * 0.1f),
                    test::parameter(numbers<float>({6, 300, 70})));
}

TEST_CASE("a branch writes parameters and buffers: they stay as they are where it is not taken") {
  auto write = [](auto& p, auto& m, auto& seen, auto& x) {
    const auto y = xla::cond(
        sum(p) > 0,
        [&] {
          seen.copy_(seen + sum(m.first(x), {0}));
          return sum(x * seen);
        },
        [&] {
          xla::cond(
              sum(x) > 0, [&] { seen.copy_(seen * 0.5f); }, [&] {});
          m.second.bias.copy_(m.second.bias - seen);
          return sum(x) + sum(seen);
        });
    seen.copy_(seen + 1.0f);
    return std::tuple(y, m.second(x));
  };
  for (float p : both)
    test::check_modes(write, xla::full<float>({2}, p), experts(),
                      xla::Buffer<float, 1>(numbers<float>({4})), numbers<float>({3, 4}));
}

TEST_CASE("a branch drops a gradient or puts another one in its place: else it stays") {
  auto accumulate = [](auto& p, auto& w, auto& xs) {
    for (int i = 0; i < 2; ++i) {
      sum(w * select(xs, 0, i)).backward();
      xla::cond(
          sum(p) > 0,
          [&] {
            w.copy_(w - w.grad() * 0.125f);
            w.zero_grad();
          },
          [] {});
    }
    sum(w * w).backward();
    return sum(w);
  };
  auto latest = [](auto&, auto& w, auto& xs) {
    sum(w * w).backward();
    const auto body = [&](const auto& none, const auto& x) {
      xla::cond(
          sum(x) > 0,
          [&] {
            w.zero_grad();
            sum(w * x).backward();
          },
          [] {});
      w.copy_(w - w.grad() * 0.125f);
      return std::pair(none, sum(w));
    };
    return xla::scan(body, std::tuple<>(), xs).second;
  };
  const auto w = test::parameter(numbers<float>({3}));
  const auto xs = xla::tensor<float>({{-1, -2, 3}, {1, -2, -3}, {4, 5, 6}, {-7, 8, -9}});
  for (float p : both) {
    test::check_modes(accumulate, xla::full<float>({2}, p), w, xs);
    test::check_modes(latest, xla::full<float>({2}, p), w, xs * p);
  }
}

TEST_CASE("a gradient from an earlier call stays where the branch that uses it up is not taken") {
  auto collect = [](auto& w, auto& x) { sum(w * x).backward(); };
  auto apply = [](auto& p, auto& w) {
    xla::cond(
        sum(p) > 0,
        [&] {
          w.copy_(w - w.grad() * 0.125f);
          w.zero_grad();
        },
        [] {});
  };
  auto again = [](auto& p, auto& w, auto& x) {
    xla::cond(
        sum(p) > 0,
        [&] {
          w.zero_grad();
          sum(w * x).backward();
        },
        [] {});
    w.copy_(w - w.grad() * 0.125f);
  };
  const auto left = [](bool eager, auto&& collect, auto&& apply, auto&& again) {
    const xla::eager_mode_guard mode(eager);
    auto w = test::parameter(numbers<float>({3}));
    for (const float p : {-1.0f, 1.0f, 1.0f, -1.0f, -1.0f, 1.0f}) {
      auto x = xla::full<float>({3}, p + 3), flag = xla::full<float>({2}, p);
      collect(w, x);
      apply(flag, w);
      collect(w, x);
      again(flag, w, x);
    }
    test::snapshot s(false);
    s.add(w);
    return s;
  };
  const auto want = left(true, collect, apply, again);
  CHECK(left(false, collect, apply, again).difference(want) == "");
  CHECK(left(false, xla::compile(collect), xla::compile(apply), xla::compile(again))
            .difference(want) == "");
}

TEST_CASE("a training step in a branch, and in a branch of a body") {
  auto once = [](auto& m, auto& opt, auto& p, auto& x) {
    return xla::cond(
        sum(p) > 0, [&] { return step(m, opt, x); }, [&] { return xla::zeros_like(sum(p)); });
  };
  auto many = [](auto& m, auto& opt, auto& xs, auto&) {
    const auto body = [&](const auto& taken, const auto& x) {
      const auto loss = xla::cond(
          sum(x) > 0, [&] { return step(m, opt, x); }, [&] { return sum(m.first(x)).detach(); });
      return std::pair(taken + 1, loss);
    };
    return xla::scan(body, xla::zeros_like(sum(xs)), xs);
  };
  for (float p : both) check_training(once, xla::full<float>({2}, p), numbers<float>({3, 4}));
  for (std::int64_t steps : {1, 2, 7})
    check_training(many, numbers<float>({steps, 3, 4}), xla::full<float>({1}, 1.0f));
}

TEST_CASE("gradients of gradients go through cond()") {
  auto train = [](auto& p, auto& w) {
    forget(w);
    const auto y = xla::cond(
        sum(p) > 0, [&] { return sum(tanh(w) * w); }, [&] { return sum(w * w * w); });
    const auto g = xla::grad(y, w, {.create_graph = true});
    sum(g * g).backward();
    return g;
  };
  for (float p : both)
    test::check_modes(train, xla::full<float>({2}, p), test::parameter(numbers<float>({5})));
}

TEST_CASE("gradients of cond() against differences") {
  for (double p : {-1.0, 1.0}) {
    const auto f = [p](const auto& x, const auto& w) {
      return xla::cond(
          xla::tensor(p) > 0, [&](const auto& a) { return tanh(matmul(a, w)) * a; },
          [&](const auto& a) { return a * a * w; }, x);
    };
    test::check_gradient(f, numbers<double>({3, 3}), numbers<double>({3, 3}));
  }
}

TEST_CASE("any pass may be left out of a function with branches") {
  auto train = [](auto& w, auto& xs) {
    forget(w, xs);
    const auto body = [&](const auto& c, const auto& x) {
      const auto next = xla::cond(
          sum(x) > 0, [&] { return xla::softmax(matmul(c, w) + x, -1) * w; },
          [&] { return transpose(w, 0, 1) - mean(c, {1}, xla::keepdim) * x; });
      return std::pair(next, next * x);
    };
    const auto [last, ys] = xla::scan(body, w, xs);
    const auto loss = sum(last * w) + sum(ys);
    loss.backward();
    return loss;
  };
  const auto w = test::parameter(numbers<float>({5, 5}));
  const auto xs = test::parameter(numbers<float>({4, 5, 5}));
  using xla::tags::verified;
  using xla::tags::without;
  test::check_modes<verified>(train, w, xs);
  test::check_modes<verified & without<"share">>(train, w, xs);
  test::check_modes<verified & without<"simplify", "dead">>(train, w, xs);
  test::check_modes<verified & without<"fuse">>(train, w, xs);
  test::check_modes<verified & without<"rows", "layouts", "sink_draws">>(train, w, xs);
}

TEST_CASE("branches of other shapes are refused at the sizes of a call") {
  auto f = xla::compile([](auto& p, auto& a, auto& b) {
    return xla::cond(
        sum(p) > 0, [&] { return a; }, [&] { return b; });
  });
  auto p = xla::ones<float>({2}), a = xla::ones<float>({3}), b = xla::ones<float>({4});
  CHECK(f(p, a, a).size(0) == 3);
  CHECK_THROWS_WITH(f(p, a, b), Catch::Contains("cond"));
}
