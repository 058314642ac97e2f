// SPDX-License-Identifier: Apache-2.0
#include "xla/loop.hpp"

#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "support/modes.hpp"
#include "xla/nn/linear.hpp"
#include "xla/op/derived/cross_entropy.hpp"
#include "xla/op/derived/split.hpp"
#include "xla/op/index_select.hpp"
#include "xla/op/matmul.hpp"
#include "xla/op/reduce.hpp"
#include "xla/op/sigmoid.hpp"
#include "xla/op/tanh.hpp"
#include "xla/run/state/metrics.hpp"

using test::check_equal;
using test::numbers;

namespace {

struct memory {
  xla::Tensor<float, 2> h, c;
  XLA_MODULE(h, c)
};

/// A carry that is a struct, layers by reference, y a tuple of which one is x itself.
struct lstm {
  xla::nn::Linear ih{3, 16}, hh{4, 16};
  template <bool Loop>
  constexpr auto run(const xla::Tensor<float, 3>& xs, const memory& first) const {
    const auto step = [&](const memory& m, const xla::Tensor<float, 2>& x) {
      const auto [i, f, g, o] = xla::chunk<4>(ih(x) + hh(m.h), 1);
      const auto c = sigmoid(f) * m.c + sigmoid(i) * tanh(g);
      const auto h = sigmoid(o) * tanh(c);
      return std::pair(memory{h, c}, std::tuple(h, x));
    };
    if constexpr (Loop) {
      const auto [last, ys] = xla::scan(step, first, xs, {.reverse = true});
      return std::tuple(last.h, last.c, std::get<0>(ys), std::get<1>(ys));
    } else {  // three steps, written out
      const auto [m2, y2] = step(first, select(xs, 0, 2));
      const auto [m1, y1] = step(m2, select(xs, 0, 1));
      const auto [m0, y0] = step(m1, select(xs, 0, 0));
      return std::tuple(m0.h, m0.c,
                        xla::stack(std::array{std::get<0>(y0), std::get<0>(y1), std::get<0>(y2)}),
                        xla::stack(std::array{std::get<1>(y0), std::get<1>(y1), std::get<1>(y2)}));
    }
  }
  XLA_MODULE(ih, hh)
};

}  // namespace

TEST_CASE("a scan has the same bits in every mode, with any number of steps") {
  auto recurrence = [](auto& h, auto& w, auto& xs) {
    return xla::scan(
        [&](const auto& carry, const auto& x) {
          const auto next = tanh(matmul(carry, w) + x);
          return std::pair(next, next * 2);
        },
        h, xs);
  };
  for (std::int64_t steps : {0, 1, 2, 7})
    test::check_modes(recurrence, numbers<float>({3, 5}), numbers<float>({5, 5}),
                      numbers<float>({steps, 3, 5}));
  test::check_modes(recurrence, numbers<double>({1, 2}), numbers<double>({2, 2}),
                    numbers<double>({30, 1, 2}));
}

TEST_CASE("a matrix that many steps multiply by is packed before the loop: the same bits") {
  constexpr auto recurrence = [](auto& w, auto& v, auto& xs) {
    const auto body = [&](const auto& h, const auto& x) {
      const auto next = tanh(matmul(h, w) * 0.02f + linear(h, v) * 0.02f + x);
      return std::pair(next, next);
    };
    return xla::scan(body, select(xs, 0, 0), xs);
  };
  const auto w = numbers<float>({184, 184}), v = numbers<float>({184, 184}, 1);
  for (auto [steps, rows] : {std::pair{40, 6}, {5, 6}, {40, 3}, {20, 130}}) {
    const auto xs = numbers<float>({steps, rows, 184});
    test::check_modes(recurrence, w, v, xs);
    test::check_modes(recurrence, test::parameter(w), test::parameter(v), xs);
  }
  auto f = xla::compile(recurrence);
  const auto xs = numbers<float>({40, 6, 184}), few = numbers<float>({5, 6, 184});
  CHECK(f.memory_analysis(w, v, xs).arena >=
        f.memory_analysis(w, v, few).arena + 2 * 184 * 184 * 4);
  const xla::eager_mode_guard eager;  // the same program with other weights
  for (const auto& other : {w, v}) {
    test::snapshot compiled, stepwise;
    compiled.add(f(other, v, xs));
    stepwise.add(recurrence(other, v, xs));
    CHECK(compiled.difference(stepwise).empty());
  }
}

TEST_CASE("a scan has the bits of its steps written out") {
  const xla::eager_mode_guard eager;
  lstm m;
  const auto xs = numbers<float>({3, 5, 3});  // of up to 4 rows ih(x) has another order in a scan
  const memory first{numbers<float>({5, 4}), numbers<float>({5, 4})};
  test::snapshot loop, steps;
  loop.add(m.run<true>(xs, first));
  steps.add(m.run<false>(xs, first));
  CHECK(loop.difference(steps).empty());
}

TEST_CASE("steps in eager mode multiply the slices of later steps in one product") {
  const xla::eager_mode_guard eager;
  const auto w = numbers<float>({5, 4});
  const auto body = [&](const auto& h, const auto& x) {
    const auto next = tanh(h + matmul(x, w));
    return std::pair(next, next);
  };
  xla::clear_counters();
  xla::scan(body, numbers<float>({3, 4}), numbers<float>({40, 3, 5}));
  CHECK(xla::counter_value("xla::matmul") == 2);  // of the first step, and of all others
}

TEST_CASE("products of later steps have their bits, whatever a step does in between") {
  constexpr auto cell = []<bool Reverse>(std::bool_constant<Reverse>) {
    return [](auto& w, auto& v, auto& xs) {
      const auto body = [&](const auto& h, const auto& x) {
        const auto next = tanh(h + matmul(x, w) + linear(x, v) + matmul(x, w) * 0.5f);
        return std::pair(next, std::tuple(x, matmul(x, w)));
      };
      const auto none = matmul(select(xs, 0, 0), w) * 0;
      return xla::scan(body, none, xs, {.reverse = Reverse});
    };
  };
  for (auto [steps, rows] : {std::pair{300, 1}, {9, 3}, {60, 7}, {3, 16}, {3, 17}}) {
    const auto w = numbers<float>({5, 4}), v = numbers<float>({4, 5}, 1);
    const auto xs = numbers<float>({steps, rows, 5});
    test::check_modes(cell(std::false_type()), w, v, xs);
    test::check_modes(cell(std::true_type()), w, v, xs);
  }
  const auto writes = [](auto& w, auto& v, auto& xs) {
    const auto body = [&](const auto& h, const auto& x) {
      const auto next = tanh(h + matmul(x, w) + matmul(x, v));
      v *= 0.75f;
      return std::pair(next, next);
    };
    const auto none = matmul(select(xs, 0, 0), w) * 0;
    return xla::scan(body, none, xs).first;
  };
  test::check_modes(writes, test::parameter(numbers<float>({5, 4})),
                    test::parameter(numbers<float>({5, 4}, 1)), numbers<float>({9, 2, 5}));
  // Some steps write, and some leave a product out. A product of five rows is that of any step.
  const auto run = [](int which, const auto& loop) {
    const xla::eager_mode_guard eager;
    xla::Buffer<float, 2> w{{5, 4}}, v{{5, 4}};
    w = numbers<float>({5, 4});
    v = numbers<float>({5, 4}, 1);
    int step = 0;
    const auto body = [&](const xla::Tensor<float, 2>& h, const xla::Tensor<float, 2>& x) {
      if (which == 0 && step == 3) w *= 0.5f;
      xla::Tensor<float, 2> next = h + matmul(x, w);
      if (which == 1 && step == 6) w = v + 0.5f;
      if (which != 2 || step < 20) next = next - matmul(x, v);
      ++step;
      return std::pair(xla::Tensor<float, 2>(tanh(next)), next);
    };
    test::snapshot made;
    loop(body, numbers<float>({5, 4}), numbers<float>({40, 5, 5}), made);
    return made;
  };
  const auto scan = [](const auto& body, const auto& h, const auto& xs, auto& made) {
    made.add(xla::scan(body, h, xs).first);
  };
  const auto write_out = [](const auto& body, const auto& first, const auto& xs, auto& made) {
    xla::Tensor<float, 2> h = first;
    for (int i = 0; i < 40; ++i) h = body(h, select(xs, 0, i)).first;
    made.add(h);
  };
  for (int which : {0, 1, 2}) {
    INFO(which);
    CHECK(run(which, scan).difference(run(which, write_out)).empty());
  }
}

TEST_CASE("carries are structs, and layers are read by reference") {
  auto run = [](auto& m, auto& xs, auto& h, auto& c) {
    return m.template run<true>(xs, memory{h, c});
  };
  for (std::int64_t steps : {0, 1, 3, 12})
    test::check_modes(run, lstm(), numbers<float>({steps, 2, 3}), numbers<float>({2, 4}),
                      numbers<float>({2, 4}));
}

TEST_CASE("loops are in loops, and read what is around them") {
  auto nested = [](auto& xs, auto& h0, auto& w) {
    const auto outer = [&](const auto& h, const auto& rows) {
      const auto start = tanh(h * 0.5f);
      const auto weight = w * 2.0f;  // of no loop
      const auto inner = [&](const auto& s, const auto& x) {
        const auto n = tanh(matmul(x, weight) + start + s);
        return std::pair(n, n * n);
      };
      const auto [last, ys] = xla::scan(inner, start + 1.0f, rows);
      return std::pair(last + sum(ys, {0}), std::tuple(sum(ys, {0}), start, w));
    };
    const auto [last, ys] = xla::scan(outer, h0, xs);
    return std::tuple(last, std::get<0>(ys), std::get<1>(ys), std::get<2>(ys));
  };
  for (auto [d, t] : {std::pair{3, 4}, {1, 7}, {6, 1}, {2, 0}, {0, 2}})
    test::check_modes(nested, numbers<float>({d, t, 2, 5}), numbers<float>({2, 5}),
                      numbers<float>({5, 5}));
}

TEST_CASE("carries change places, stay as they are, or become what is outside") {
  auto odd = [](auto& a, auto& b, auto& xs) {
    const auto body = [&](const auto& carry, const auto& x) {
      const auto& [p, q, r, s] = carry;
      return std::pair(std::tuple(q, p, r, b * 2), std::array{x, x, p});
    };
    const auto [last, ys] = xla::scan(body, std::tuple(a, b, a, xla::zeros_like(b)), xs);
    return std::tuple(last, ys);
  };
  for (std::int64_t steps : {0, 1, 2, 5})
    test::check_modes(odd, numbers<float>({17}), numbers<float>({17}), numbers<float>({steps, 17}));
}

TEST_CASE("steps keep what is the same in each, which is there before the loop") {
  auto same = [](auto& v, auto& w, auto& xs) {
    const auto body = [&](const auto& c, const auto&) {
      return std::pair(c, std::tuple(tanh(matmul(v, w)), sum(matmul(w, v), {1})));
    };
    return xla::scan(body, xla::ones_like(v), xs);
  };
  for (std::int64_t steps : {0, 1, 5})
    test::check_modes<xla::tags::verified>(same, numbers<float>({4, 4}), numbers<float>({4, 4}),
                                           numbers<float>({steps, 2}));
}

TEST_CASE("a loop without xs says how many steps it has") {
  auto powers = [](auto& x, auto& xs) {
    const auto body = [&](const auto& p, std::tuple<>) { return std::pair(p * x, p); };
    return xla::scan(body, xla::ones_like(x), std::tuple<>(), {.length = xs.size(0)});
  };
  for (std::int64_t steps : {0, 1, 5})
    test::check_modes(powers, numbers<float>({7}), numbers<float>({steps, 2}));
}

TEST_CASE("a carry is updated where it is, or moves between two places: the same bits") {
  auto updates = [](auto& table, auto& rows, auto& xs) {
    const auto body = [&](const auto& t, const auto& x) {
      const auto next = t + x;
      return std::pair(next, sum(next, {0}) + sum(t * rows, {0}));
    };
    return xla::scan(body, table, xs);
  };
  for (std::int64_t steps : {1, 2, 3, 8})
    test::check_modes(updates, numbers<float>({6, 5}), numbers<float>({6, 5}),
                      numbers<float>({steps, 5}));
}

TEST_CASE("a check in a step runs in every step") {
  auto look_up = [](auto& table, auto& start, auto& places) {
    return xla::scan(
        [&](const auto& sum_of, const auto& at) {
          const auto next = sum_of + index_select(table, 0, at);
          return std::pair(next, next);
        },
        start, places);
  };
  const auto table = numbers<float>({4, 3}), start = numbers<float>({2, 3});
  const auto places = xla::tensor<std::int64_t>({0, 1, 3, 2, 2, 0}).view({3, 2});
  test::check_modes(look_up, table, start, places);
  const auto wrong = xla::tensor<std::int64_t>({0, 1, 3, 2, 2, 4}).view({3, 2});
  auto f = xla::compile(look_up);
  CHECK_THROWS_WITH(f(table, start, wrong), Catch::Contains("4"));
  const xla::eager_mode_guard eager;
  CHECK_THROWS_WITH(look_up(table, start, wrong), Catch::Contains("4"));
}

TEST_CASE("a loop of numbers, by their count") {
  auto sums = [](auto& x, auto& xs) {
    return xla::fori_loop(
        2, xs.size(0),
        [&](const auto& i, const auto& carry) {
          const auto& [sum_of, last] = carry;
          return std::tuple(sum_of + x * xla::cast<float>(i), i);
        },
        std::tuple(xla::zeros_like(x), xla::tensor<std::int64_t>(-1)));
  };
  for (std::int64_t steps : {0, 1, 2, 3, 9})
    test::check_modes(sums, numbers<float>({5}), numbers<float>({steps, 1}));
  const xla::eager_mode_guard eager;
  auto x = xla::ones<float>({1});
  auto xs = xla::ones<float>({5, 1});
  const auto [all, last] = sums(x, xs);
  check_equal(all, {1}, std::vector<float>{2 + 3 + 4});
  CHECK(last.item() == 4);
}

TEST_CASE("a loop of constants alone reads what is around it, or is one constant") {
  auto around = [](auto& x) {
    return std::tuple(
        xla::fori_loop(
            0, 4, [&](const auto&, const auto& c) { return c * 2 + x; }, xla::zeros<float>({3})),
        x + xla::fori_loop(
                0, 4, [](const auto&, const auto& c) { return c * 2; }, xla::tensor(1.0f)));
  };
  test::check_modes(around, numbers<float>({3}));
}

TEST_CASE("another number of steps is no other program") {
  auto f = xla::compile([](auto& h, auto& xs) {
    return xla::scan([](const auto& c, const auto& x) { return std::pair(c + x, c); }, h, xs);
  });
  for (std::int64_t steps = 0; steps < 20; ++steps) {
    auto h = xla::zeros<float>({2});
    auto xs = xla::ones<float>({steps, 2});
    CHECK(std::get<0>(f(h, xs)).to_vector() == std::vector<float>(2, static_cast<float>(steps)));
  }
}

TEST_CASE("gradients go through the steps of an eager or traced loop") {
  for (bool eager : {true, false}) {
    const xla::eager_mode_guard mode(eager);
    auto h = numbers<float>({2}), same = h;
    auto xs = numbers<float>({3, 2});
    h.requires_grad_();
    same.requires_grad_();
    const auto [last, ys] =
        xla::scan([](const auto& c, const auto& x) { return std::pair(c * x, c * c); }, h, xs);
    (sum(last) + sum(ys)).backward();
    const auto a = select(xs, 0, 0), b = select(xs, 0, 1), c = select(xs, 0, 2);
    const auto h1 = same * a, h2 = h1 * b;
    (sum(h2 * c) + sum(same * same) + sum(h1 * h1) + sum(h2 * h2)).backward();
    test::check_equal(h.grad(), same.grad(), 1e-5);
  }
}

TEST_CASE("errors of loops") {
  const xla::eager_mode_guard eager;
  auto h = numbers<float>({2});
  auto xs = numbers<float>({3, 2});
  const auto grow = [](const auto& c, const auto& x) {
    return std::pair(xla::cat({c, x}), std::tuple<>());
  };
  CHECK_THROWS_WITH(xla::scan(grow, h, xs),
                    Catch::StartsWith("scan: a carry of shape (2,) became one of shape (4,)"));
  const auto keep = [](const auto& c, const auto&) { return std::pair(c, std::tuple<>()); };
  CHECK_THROWS_WITH(xla::scan(keep, h, std::tuple(xs, h)),
                    Catch::Contains("xs and options.length have different lengths: 3 and 2"));
  CHECK_THROWS_WITH(xla::scan(keep, h, std::tuple<>()), Catch::StartsWith("scan: there are no xs"));
}
