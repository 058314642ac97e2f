// SPDX-License-Identifier: Apache-2.0
// A loop of traced mode is one loop of its graph, whose body is recorded once; where it cannot be,
// its steps run one by one. Gradients go through it, also from outside of a compiled function.
#include <tuple>
#include <utility>
#include <vector>

#include "support/modes.hpp"
#include "support/plans.hpp"
#include "xla/loop.hpp"
#include "xla/nn/dropout.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/derived/attention.hpp"
#include "xla/op/derived/distance_loss.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/relu.hpp"
#include "xla/op/tanh.hpp"
#include "xla/optim/adam.hpp"
#include "xla/run/state/metrics.hpp"

using test::numbers;

namespace {

/// What f leaves in copies of x, as many steps as mode says.
template <class F, class... X>
test::snapshot run(bool eager, const F& f, const X&... x) {
  const xla::eager_mode_guard mode(eager);
  return test::call_on_copies([&](auto&... c) { return f(c...); }, x...);
}
/// The same traced as eager.
template <class F, class... X>
void check_traced(const F& f, const X&... x) {
  CHECK(run(false, f, x...).difference(run(true, f, x...)) == "");
}

struct rnn {
  xla::nn::Linear in{3, 4}, back{4, 4};
  constexpr auto operator()(const auto& xs, const auto& h) const {
    const auto step = [&](const auto& c, const auto& x) {
      const auto next = tanh(in(x) + back(c));
      return std::pair(next, next * next);
    };
    return xla::scan(step, h, xs);
  }
  XLA_MODULE(in, back)
};

}  // namespace

TEST_CASE("the body of a traced loop runs once, and the graph has it once") {
  const xla::eager_mode_guard traced(false);
  const auto size_of_graph = [](std::int64_t steps) {
    auto h = numbers<float>({2, 4});
    auto xs = numbers<float>({steps, 2, 3});
    rnn m;
    xla::sync();
    int calls = 0;
    const auto [last, ys] = xla::scan(
        [&](const auto& c, const auto& x) {
          ++calls;
          const auto next = tanh(m.in(x) + m.back(c));
          return std::pair(next, next);
        },
        h, xs);
    CHECK(calls <= 2);  // once more where gradients flow from step to step
    const auto loss = sum(ys) + sum(last);
    loss.backward();
    xla::clear_metrics();
    xla::sync();
    return xla::metric_data("TensorsGraphSize").value().accumulator;
  };
  const auto small = size_of_graph(3);
  CHECK(size_of_graph(300) == small);
}

TEST_CASE("the plan of a loop's body has tables for the values that its steps use") {
  const xla::eager_mode_guard traced(false);
  const auto values_beside = [](int more) {
    auto h = numbers<float>({2, 4});
    auto xs = numbers<float>({3, 2, 3});
    auto w = test::parameter(numbers<float>({4, 4}));
    rnn m;
    auto [last, ys] = m(xs, h);
    for (int i = 0; i < more; ++i) last = relu(matmul(last, w));
    (sum(last) + sum(ys)).backward();
    int count = 0;
    const test::on_each_plan look([&](const auto& plan) {
      for (const auto& s : plan.steps)
        if (s.loop) count = s.loop->body_plan()->source.count.values;
    });
    xla::sync(true);
    return count;
  };
  const int alone = values_beside(0);
  CHECK(alone > 5);
  CHECK(values_beside(50) == alone);
}

TEST_CASE("one graph has any number of steps") {
  const auto train = [](std::int64_t steps) {
    auto w = test::parameter(numbers<float>({3}));
    auto h = numbers<float>({3});
    auto xs = numbers<float>({steps, 3});
    h.requires_grad_();
    const auto [last, ys] = xla::scan(
        [&](const auto& c, const auto& x) {
          const auto next = tanh(c * w + x);
          return std::pair(next, next * c);
        },
        h, xs);
    const auto times = xla::fori_loop(
        0, steps, [&](const auto& i, const auto& c) { return c * w + xla::cast<float>(i); }, last);
    const auto loss = sum(last) + sum(ys * xs) / 7.0f + sum(times);
    loss.backward();
    test::snapshot all;
    all.add(std::tuple(loss, w.grad(), h.grad()));
    return all;
  };
  const auto graphs = [] { return xla::counter_value("UncachedCompile").value_or(0); };
  bool first = true;
  for (std::int64_t steps : {7, 2, 40, 5, 1000, 8, 7}) {
    const xla::eager_mode_guard traced(false);
    INFO(steps << " steps");
    const auto before = graphs();
    const auto made = train(steps);
    CHECK(graphs() - before == (first ? 1 : 0));
    first = false;
    const xla::eager_mode_guard eager;
    CHECK(made.difference(train(steps)) == "");
  }
  const xla::eager_mode_guard traced(false);
  const auto before = graphs();
  for (std::int64_t steps = 0; steps < 1000; ++steps) {
    const auto add = [](const auto& i, const auto& c) { return c + i; };
    const auto sum_of = xla::fori_loop(0, steps, add, xla::tensor<std::int64_t>(0)).item();
    REQUIRE(sum_of == steps * (steps - 1) / 2);
  }
  CHECK(graphs() - before == 1);
}

TEST_CASE("a body that reads or keeps a tensor runs step by step") {
  const auto h = numbers<float>({3});
  const auto xs = numbers<float>({4, 3});
  check_traced(
      [](auto& c0, auto& x0) {
        std::int64_t large = 0;
        const auto r = xla::scan(
            [&](const auto& c, const auto& x) {
              const auto next = c + x;
              large += sum(next).item() > 0 ? 1 : 0;
              return std::pair(next, c);
            },
            c0, x0);
        return std::tuple(r.first, r.second, xla::tensor<std::int64_t>(large));
      },
      h, xs);
  check_traced(
      [](auto& c0, auto& x0) {
        xla::Tensor<float, 1> kept;
        const auto r = xla::scan(
            [&](const auto& c, const auto& x) {
              kept = c * x;
              return std::pair(c + x, c);
            },
            c0, x0);
        return std::tuple(r.first, kept);
      },
      h, xs);
  // The product waits when the step ends; the gradient of w is one product of all steps.
  check_traced(
      [](auto& w, auto& rows) {
        w.zero_grad();
        const auto r = xla::scan(
            [&](const auto& c, const auto& x) {
              const auto next = tanh(matmul(c, w) * sum(x).item() + x);
              return std::pair(next, next * next);
            },
            select(rows, 0, 0), rows);
        sum(r.second).backward();
        return std::tuple(r.first, w.grad());
      },
      test::parameter(numbers<float>({24, 24})), numbers<float>({7, 6, 24}));
}

TEST_CASE("a body that writes is one loop of one graph, and so are training steps") {
  const auto h = numbers<float>({3});
  const auto xs = numbers<float>({4, 3});
  check_traced(
      [](auto& seen, auto& c0, auto& x0) {
        return xla::scan(
            [&](const auto& c, const auto& x) {
              seen.copy_(seen + x);
              return std::pair(c * seen, c);
            },
            c0, x0);
      },
      xla::Buffer<float, 1>(h), h, xs);
  for (const bool before : {false, true})
    check_traced(
        [before](auto& w, auto& c0, auto& x0) {
          if (before) sum(w * w).backward();
          const auto r = xla::scan(
              [&](const auto& c, const auto& x) {
                sum(w * x).backward();
                return std::pair(c + x, c);
              },
              c0, x0);
          return std::tuple(r.first, w.grad());
        },
        test::parameter(h), h, xs);
  {
    const xla::eager_mode_guard traced(false);
    xla::Buffer<float, 1> sums(h);
    xla::sync();
    const auto add = [&](const auto&, const auto& x) {
      sums.copy_(sums + x);
      return std::pair(std::tuple<>(), std::tuple<>());
    };
    xla::scan(add, std::tuple<>(), xs);
    xla::clear_metrics();
    xla::sync();  // the sums are where they lay
    CHECK(xla::metric_data("InputOutputAliasCount").value().accumulator == 1);
  }
  const auto train = [](auto& m, auto& opt, auto& rows, auto& targets) {
    const auto step = [&](const auto&, const auto& x) {
      const auto& [row, target] = x;
      opt.zero_grad();
      const auto made = xla::dropout(xla::relu(m.in(row)), 0.25f, true);
      const auto loss = xla::mse_loss(m.back(made), target);
      loss.backward();
      opt.step();
      return std::pair(std::tuple<>(), loss);
    };
    return xla::scan(step, std::tuple<>(), std::tuple(rows, targets)).second;
  };
  const auto trained = [&](bool eager, std::int64_t steps, bool frozen) {
    const xla::eager_mode_guard mode(eager);
    xla::manual_seed(5);
    rnn m;
    m.in.bias.requires_grad_(!frozen);
    xla::optim::Adam opt{m, {.lr = 0.01f}};
    const auto rows = numbers<float>({steps, 2, 3}), targets = numbers<float>({steps, 2, 4});
    xla::sync();
    test::snapshot all;
    for (int call = 0; call < 2; ++call) {
      const auto graphs = [] { return xla::counter_value("UncachedCompile").value_or(0); };
      const auto before = graphs();
      const auto losses = train(m, opt, rows, targets);
      xla::clear_metrics();
      xla::sync();
      if (!eager && steps > 0) {  // of the call, its results, and what is written
        CHECK(xla::metric_data("TensorsGraphSize").value().accumulator < 80);
        if (call == 1) CHECK(graphs() == before);
      }
      all.add(losses);
    }
    all.add(m);
    return all;
  };
  for (const bool frozen : {false, true})
    for (const std::int64_t steps : {0, 1, 5})
      CHECK(trained(false, steps, frozen).difference(trained(true, steps, frozen)) == "");
}

TEST_CASE("a body that draws is one loop of one graph, with the numbers of steps one by one") {
  const auto f = [](auto& w, auto& h, auto& xs) {
    const auto noisy = [&](const auto& c, const auto& x) {
      const auto first = xla::rand_like(x);
      xla::randn_like(c);  // which nobody reads
      const auto inner = [&](const auto& i, const auto& s) {
        return s * w + xla::randn_like(s) * xla::cast<float>(i);
      };
      const auto sums = xla::fori_loop(0, 3, inner, c * first);
      const auto next = sums + xla::rand_like(x);
      return std::pair(next, next * x);
    };
    const auto before = xla::rand_like(h);
    const auto [last, ys] = xla::scan(noisy, before, xs);
    const auto behind = xla::rand_like(last);
    const auto loss = sum(ys * ys) + sum(last * behind);
    loss.backward();
    return std::tuple(loss, behind, w.grad(), xs.grad());
  };
  const auto w = test::parameter(numbers<float>({5})), h = test::parameter(numbers<float>({5}));
  xla::sync();
  bool first = true;
  for (const std::int64_t steps : {9, 4, 2, 40}) {
    const auto xs = test::parameter(numbers<float>({steps, 5}));
    const auto before = xla::counter_value("UncachedCompile").value_or(0);
    const auto traced = run(false, f, w, h, xs);
    CHECK(xla::counter_value("UncachedCompile").value_or(0) - before == (first ? 1 : 0));
    first = false;
    CHECK(traced.difference(run(true, f, w, h, xs)) == "");
  }
  int calls = 0;
  const auto checkpoints = [&](auto& x, auto& rows) {
    const auto body = [&](const auto& c, const auto& r) {
      ++calls;
      return std::pair(c * r * xla::rand_like(r), c);
    };
    const auto [last, ys] = xla::scan(body, x, rows, {.checkpoint_every = 2});
    sum(last + sum(ys, {0})).backward();
    return std::tuple(last, ys, x.grad());
  };
  check_traced(checkpoints, h, numbers<float>({40, 5}));
  CHECK(calls < 45);  // 40 in eager mode
  const auto seeds = [](auto& x) {
    const auto body = [&](const auto&, const auto& c) {
      const auto one = c + xla::rand_like(c);
      xla::manual_seed(3);
      return one * xla::rand_like(c);
    };
    return xla::fori_loop(0, 3, body, x);
  };
  check_traced(seeds, h);
}

TEST_CASE("an op with several results is in a body that runs again for its gradients") {
  const auto attends = [](auto& x, auto& w) {
    const auto body = [&](const auto&, const auto& c) {
      return xla::scaled_dot_product_attention(c * w, c, c + w) + c;
    };
    const auto last = xla::fori_loop(0, 5, body, x * 1.0f, {.checkpoint_every = 1});
    sum(last * last).backward();
    return std::tuple(last, x.grad(), w.grad());
  };
  check_traced(attends, test::parameter(numbers<float>({1, 2, 3, 4}, 1)),
               test::parameter(numbers<float>({1, 2, 3, 4}, 2)));
}

TEST_CASE("a condition that is computed makes one loop of one graph, one that is read does not") {
  const auto h = numbers<float>({3});
  const auto halve = [](auto& seen, auto& c0) {
    const auto above = [](const auto& c) { return sum(c * c) > 0.001f; };
    const auto body = [&](const auto& c) {
      seen.copy_(seen + 1.0f);
      const auto inner = [&](const auto& s) { return s * 0.5f; };
      return xla::while_loop([](const auto& s) { return sum(s) > 2.0f; }, inner, c * 0.75f);
    };
    return xla::while_loop(above, body, c0 * 40.0f);
  };
  check_traced(halve, xla::Buffer<float, 1>(h), h);
  {
    const xla::eager_mode_guard traced(false);
    xla::Buffer<float, 1> seen(h);
    auto c = h;
    xla::sync();
    xla::clear_metrics();
    const auto made = halve(seen, c);
    CHECK(!xla::metric_data("TensorsGraphSize"));  // nothing has run so far
  }
  check_traced(
      [](auto& c0) {
        const auto small = [](const auto& c) { return xla::tensor(sum(c).item() < 90.0f); };
        return xla::while_loop(
            small, [](const auto& c) { return c * c + 2.0f; }, c0);
      },
      h);
  check_traced(
      [](auto& c0) {
        const auto small = [](const auto& c) { return sum(c) < 90.0f; };
        const auto grow = [](const auto& c) { return c + xla::rand_like(c) + 3.0f; };
        return std::tuple(xla::while_loop(small, grow, c0), xla::rand_like(c0));
      },
      h);
}

TEST_CASE("cond() is part of one graph, whichever branch is taken, and however it is decided") {
  const auto train = [](auto& m, auto& opt, auto& seen, auto& x, const auto& first) {
    opt.zero_grad();
    const auto scaled = x * 2.0f;
    const auto y = xla::cond(
        first, [&] { return m.back(xla::relu(m.in(x))); },
        [&] { return xla::tanh(m.back(xla::tanh(m.in(scaled)))); });
    const auto loss = xla::mse_loss(y, xla::ones_like(y));
    loss.backward();
    xla::cond(
        loss < 0.75f,
        [&] {
          opt.step();
          seen.copy_(seen + sum(y, {0}));
        },
        [&] { m.in.bias.copy_(m.in.bias * 0.5f); });
    return loss.detach();
  };
  const auto trained = [&](bool eager) {
    const xla::eager_mode_guard mode(eager);
    xla::manual_seed(5);
    rnn m;
    xla::optim::Adam opt{m, {.lr = 0.05f}};
    xla::Buffer<float, 1> seen(numbers<float>({4}));
    auto x = numbers<float>({2, 3});
    xla::sync();
    test::snapshot all;
    const auto graphs = [] { return xla::counter_value("UncachedCompile").value_or(0); };
    const auto before = graphs();
    for (int call = 0; call < 8; ++call) {
      xla::clear_metrics();
      const auto loss = train(m, opt, seen, x, xla::tensor(call % 3 == 0));
      CHECK(!xla::metric_data("TensorsGraphSize"));  // nothing has run so far
      xla::sync();
      all.add(loss);
    }
    if (!eager) CHECK(graphs() - before == 1);
    all.add(std::tuple(seen.detach(), m));
    return all;
  };
  CHECK(trained(false).difference(trained(true)) == "");
}

TEST_CASE("a branch that reads or draws, or leaves other shapes, runs where it is taken") {
  for (const float p : {-1.0f, 1.0f}) {
    const auto by = xla::full<float>({2}, p);
    const auto x = test::parameter(numbers<float>({3}));
    check_traced(
        [](auto& q, auto& a) {
          std::int64_t large = 0;
          const auto y = xla::cond(
              sum(q) > 0, [&] { return a * xla::rand_like(a); },
              [&] {
                large += sum(a).item() > 0 ? 1 : 0;
                return a * 2.0f;
              });
          sum(y).backward();
          return std::tuple(y, xla::rand_like(a), xla::tensor(large));
        },
        by, x);
    check_traced(
        [](auto& q, auto& a) {
          return xla::cond(
              sum(q) > 0, [&] { return a + 1.0f; }, [&] { return xla::slice(a * 2.0f, 0, 0, 2); });
        },
        by, x);
    check_traced(
        [](auto& q, auto& a) {
          sum(a * a).backward();
          xla::cond(
              sum(q) > 0, [&] { a.zero_grad(); }, [&] {});
          return sum(a);
        },
        by, x);
  }
}

TEST_CASE("a loop reads what is pending, and is read by what comes after it") {
  check_traced(
      [](auto& w, auto& h, auto& xs) {
        const auto before = tanh(xs * 2.0f);
        const auto outer = w * 3.0f;
        const auto [last, ys] = xla::scan(
            [&](const auto& c, const auto& x) { return std::pair(c * outer + x, c - outer); }, h,
            before);
        const auto more = xla::scan(
            [&](const auto& c, const auto& x) { return std::pair(c + x * last, c); }, last, ys);
        h.copy_(more.first);
        return std::tuple(more.second, before);
      },
      test::parameter(numbers<float>({3})), xla::Buffer<float, 1>(numbers<float>({3})),
      numbers<float>({5, 3}));
}

TEST_CASE("a body takes gradients with xla::grad, which end at what its loop has given it") {
  check_traced(
      [](auto& w, auto& h, auto& xs) {
        const auto descend = [&](const auto& c, const auto& x) {
          const auto g = xla::grad(sum(w * c * c * x), c);
          return std::pair(c - g * 0.1f, g);
        };
        return xla::scan(descend, h * 1.0f, xs);
      },
      test::parameter(numbers<float>({3})), test::parameter(numbers<float>({3})),
      numbers<float>({4, 3}));
}

TEST_CASE("gradients come to a traced loop whose values have been read already") {
  const auto f = [](auto& w, auto& h, auto& xs) {
    const auto [last, ys] = xla::scan(
        [&](const auto& c, const auto& x) {
          const auto next = tanh(c * w + x);
          return std::pair(next, next * w);
        },
        h, xs);
    const auto loss = sum(last * last) + sum(ys);
    const float seen = loss.item();
    loss.backward();
    return std::tuple(xla::tensor<float>(seen), w.grad(), xs.grad(), h.grad());
  };
  for (std::int64_t steps : {1, 2, 6})
    check_traced(f, test::parameter(numbers<float>({3})), test::parameter(numbers<float>({3})),
                 test::parameter(numbers<float>({steps, 3})));
}

TEST_CASE("backward() outside of a compiled function goes through its loops") {
  const auto losses = [](auto& m, auto& xs, auto& h) {
    auto scaled = xs * 2.0f;
    const auto [last, ys] = m(scaled, h);
    return sum(last * last) + sum(ys);
  };
  auto compiled = xla::compile(losses);
  for (bool eager : {true, false})
    for (std::int64_t steps : {1, 2, 5}) {
      rnn m;
      const auto xs = test::parameter(numbers<float>({steps, 2, 3}));
      const auto h = test::parameter(numbers<float>({2, 4}));
      const auto train = [&](auto& f) {
        return [&](auto& model, auto& x, auto& first) {
          auto loss = f(model, x, first);
          loss.backward();
          return loss;
        };
      };
      CHECK(run(eager, train(compiled), m, xs, h).difference(run(true, train(losses), m, xs, h)) ==
            "");
    }
}

TEST_CASE("and through loops in loops, with what is the same in all steps") {
  const auto nested = [](auto& w, auto& xs, auto& h) {
    const auto outer = [&](const auto& c, const auto& rows) {
      const auto twice = w * 2.0f;
      const auto inner = [&](const auto& s, const auto& x) {
        const auto n = tanh(x * twice + c * s);
        return std::pair(n, n * w);
      };
      const auto [last, ys] = xla::scan(inner, c + 1.0f, rows, {.reverse = true});
      return std::pair(last * c + sum(ys, {0}), sum(ys, {0}));
    };
    const auto [last, ys] = xla::scan(outer, h, xs);
    return sum(last) + sum(ys * ys);
  };
  auto compiled = xla::compile(nested);
  const auto w = test::parameter(numbers<float>({5}));
  const auto xs = test::parameter(numbers<float>({3, 4, 5}));
  const auto h = test::parameter(numbers<float>({5}));
  const auto train = [&](auto& f) {
    return [&](auto&... a) {
      auto loss = f(a...);
      loss.backward();
      return loss;
    };
  };
  for (bool eager : {true, false})
    CHECK(run(eager, train(compiled), w, xs, h).difference(run(true, train(nested), w, xs, h)) ==
          "");
}

TEST_CASE("but not through a loop that draws") {
  auto f = xla::compile([](auto& h, auto& xs) {
    const auto body = [](const auto& c, const auto& x) {
      return std::pair(c * x * xla::rand_like(x), c);
    };
    return xla::scan(body, h, xs).first;
  });
  auto h = numbers<float>({2});
  auto xs = numbers<float>({3, 2});
  h.requires_grad_();
  CHECK_THROWS_WITH(sum(f(h, xs)).backward(),
                    Catch::Contains("of a function with a loop that draws or exchanges"));
}
