// SPDX-License-Identifier: Apache-2.0
// Loops whose number of steps is known at run time only, and may be 0: what the first values get, and
// in which order gradients are summed.
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "xla/loop.hpp"
#include "xla/xla.hpp"

using test::numbers;

namespace {

using Vector = xla::Tensor<float, 1>;

/// The gradients that f(v, w, xs), a number, gives, the same in every mode for 0, 1 and 3 steps.
/// What both weights get outside of the loop keeps a gradient of zeros from being one more tensor.
template <class F>
void check_steps(F) {
  const auto train = [](auto& v, auto& w, auto& xs) {
    v.zero_grad();
    w.zero_grad();
    const auto loss = F{}(v, w, xs) + sum(v * w);
    loss.backward();
    return std::tuple(loss, v.grad(), w.grad());
  };
  const auto v = test::parameter(numbers<float>({5}, 1)), w = test::parameter(numbers<float>({5}, 2));
  for (std::int64_t steps : {0, 1, 3}) {
    INFO(steps << " steps");
    test::check_modes<xla::tags::verified>(train, v, w, numbers<float>({steps, 5}, 3));
  }
}
/// The gradients of one that is as if there were no loop.
template <class F, class G>
void check_none(F f, G without_loop) {
  const auto xs = xla::zeros<float>({0, 5});
  const auto gradients = [&](int way) {
    auto v = test::parameter(numbers<float>({5}, 1)), w = test::parameter(numbers<float>({5}, 2));
    const xla::eager_mode_guard mode(way < 2);
    if (way == 0) {
      sum(without_loop(v, w)).backward();
    } else if (way == 3) {
      const auto train = [](auto& v, auto& w, auto& xs) {
        const auto loss = sum(F{}(v, w, xs));
        loss.backward();
        return loss;
      };
      xla::compile<xla::tags::verified>(train)(v, w, xs);
    } else {
      sum(f(v, w, xs)).backward();
    }
    return v.grad().to_vector();
  };
  const auto want = gradients(0);
  for (int way : {1, 2, 3}) {
    INFO((way == 1 ? "eager" : way == 2 ? "traced" : "compiled"));
    CHECK(gradients(way) == want);
  }
}

constexpr auto passes_on = [](auto& v, auto& w, auto& xs) {
  const auto step = [&](const auto& c, const auto& x) {
    const auto& [same, other] = c;
    return std::pair(std::tuple(same, other * w + x), other);
  };
  const auto [last, ys] = xla::scan(step, std::tuple(v * 2.0f, w * 3.0f), xs);
  return sum(std::get<0>(last) * std::get<1>(last)) + sum(ys * ys);
};
constexpr auto replaces = [](auto& v, auto& w, auto& xs) {
  const auto step = [](const auto&, const auto& x) { return std::pair(x, x * 2.0f); };
  const auto last = xla::scan(step, v * 2.0f, xs).first;
  return sum(last * last * w);
};
constexpr auto replaces_by_weight = [](auto& v, auto& w, auto& xs) {
  const auto step = [&](const auto& c, const auto& x) { return std::pair(tanh(w + x), c * x); };
  const auto [last, ys] = xla::scan(step, v * 2.0f, xs, {.reverse = true});
  return sum(last * last) + sum(ys);
};
constexpr auto detaches = [](auto& v, auto& w, auto& xs) {
  const auto step = [&](const auto& c, const auto& x) {
    return std::pair((c * w + x).detach(), c * x);
  };
  const auto [last, ys] = xla::scan(step, v * 2.0f, xs);
  return sum(last * last * w) + sum(ys * w);
};
constexpr auto constant = [](auto& v, auto& w, auto& xs) {
  const auto body = [&](const auto&, const auto& c) { return xla::ones_like(c); };
  return sum(xla::fori_loop(0, xs.size(0), body, v * w) * w);
};
constexpr auto every_two = [](auto& v, auto& w, auto& xs) {
  const auto step = [&](const auto& c, const auto& x) {
    const auto& [a, b] = c;
    return std::pair(std::tuple((a * w).detach(), b * a * w), a + x);
  };
  const auto [last, ys] = xla::scan(step, std::tuple(v * w, v * 1.0f), xs, {.checkpoint_every = 2});
  return sum(std::get<0>(last) * std::get<1>(last)) + sum(ys * w);
};
constexpr auto again = [](auto& v, auto& w, auto& xs) {
  const auto step = [&](const auto& c, const auto& x) {
    const auto& [a, b] = c;
    return std::pair(std::tuple((a * w).detach(), b * a * w), a + x);
  };
  const auto [last, ys] = xla::scan(step, std::tuple(v * w, v * 1.0f), xs, {.checkpoint_every = 1});
  return sum(std::get<0>(last) * std::get<1>(last)) + sum(ys * w);
};
constexpr auto nested = [](auto& v, auto& w, auto& xs) {
  const auto outer = [&](const auto& i, const auto& c) {
    const auto step = [&](const auto&, const auto& x) {
      return std::pair((x * w).detach(), x * w);
    };
    const auto [last, ys] = xla::scan(step, c * w, xs);
    return last * v + sum(ys, {0}) + xla::cast<float>(i);
  };
  return sum(xla::fori_loop(0, 3, outer, v) * w);
};

}  // namespace

TEST_CASE("a loop of 0, 1 or 3 steps gives the same gradients in every mode") {
  check_steps(passes_on);
  check_steps(replaces);
  check_steps(replaces_by_weight);
  check_steps(detaches);
  check_steps(constant);
  check_steps(every_two);
  check_steps(again);
  check_steps(nested);
}

TEST_CASE("through a loop of no steps gradients reach the first value, as if there were none") {
  check_none([](auto& v, auto& w, auto& xs) { return replaces(v, w, xs); },
             [](auto& v, auto& w) { return square(v * 2.0f) * w; });
  check_none([](auto& v, auto& w, auto& xs) { return detaches(v, w, xs); },
             [](auto& v, auto& w) { return square(v * 2.0f) * w; });
  check_none([](auto& v, auto& w, auto& xs) { return constant(v, w, xs); },
             [](auto& v, auto& w) { return v * w * w; });
  check_none([](auto& v, auto& w, auto& xs) { return every_two(v, w, xs); },
             [](auto& v, auto& w) { return v * w * v; });
}

TEST_CASE("a loop of no steps is all that requires a gradient") {
  const auto only = [](auto& v, auto& xs) {
    v.zero_grad();
    const auto step = [](const auto& c, const auto& x) { return std::pair(c.detach(), x); };
    const auto loss = sum(square(xla::scan(step, v * 2.0f, xs).first));
    loss.backward();
    return std::tuple(loss, v.grad());
  };
  test::check_modes(only, test::parameter(numbers<float>({5})), xla::zeros<float>({0, 5}));
}

TEST_CASE("tensors read by a body that never runs get zero gradients in every mode") {
  const auto train = [](auto& v, auto& w, auto& xs) {
    const auto step = [&](const auto& c, const auto& x) { return std::pair(c * w + x, c); };
    const auto [last, ys] = xla::scan(step, v, xs);
    const auto loss = sum(last * last) + sum(ys);
    loss.backward();
    return loss;
  };
  for (int way : {0, 1, 2}) {
    const xla::eager_mode_guard mode(way == 0);
    auto v = test::parameter(numbers<float>({5})), w = test::parameter(numbers<float>({5}));
    auto xs = xla::zeros<float>({0, 5});
    if (way == 2) xla::compile(train)(v, w, xs);
    else train(v, w, xs);
    CHECK(w.grad().to_vector() == std::vector<float>(5, 0.0f));
  }
}

TEST_CASE("gradients are summed in one order, also where a loop has no steps") {
  const auto train = [](auto& p, auto& q, auto& xs) {
    p.zero_grad();
    q.zero_grad();
    const auto step = [&](const auto& c, const auto& x) {
      const auto& [a, b] = c;
      return std::pair(std::tuple(a * q + x, b * q - x), x * q);
    };
    const auto [last, ys] = xla::scan(step, std::tuple(p * 3.7f, p * p * 0.3f), xs);
    const auto& [a, b] = last;
    // The loss comes to b first, then to p by another way, and then to a.
    const auto loss = sum(b * b * 1.1f) + sum(tanh(p) * q) + sum(ys) + sum(a * a * a);
    loss.backward();
    return std::tuple(loss, p.grad(), q.grad());
  };
  for (std::int64_t steps : {0, 1, 2})
    test::check_modes<xla::tags::verified>(train, test::parameter(numbers<float>({67}, 1)),
                                           test::parameter(numbers<float>({67}, 2)),
                                           numbers<float>({steps, 67}, 3));
  const auto turns = [](auto& p, auto& q, auto& xs) {
    p.zero_grad();
    q.zero_grad();
    const auto body = [&](const auto&, const auto& c) {
      const auto& [a, b] = c;
      return std::tuple(a * q, b * q);
    };
    const auto [a, b] =
        xla::fori_loop(0, xs.size(0), body, std::tuple(p * 3.7f, p * p * 0.3f));
    const auto loss = sum(b * b * 1.1f) + sum(tanh(p) * q) + sum(a * a * a);
    loss.backward();
    return std::tuple(loss, p.grad(), q.grad());
  };
  for (std::int64_t steps : {0, 1, 2})
    test::check_modes<xla::tags::verified>(turns, test::parameter(numbers<float>({67}, 1)),
                                           test::parameter(numbers<float>({67}, 2)),
                                           numbers<float>({steps, 67}, 3));
}

TEST_CASE("gradients of gradients, where a body cuts the carry off") {
  const auto train = [](auto& v, auto& w, auto& xs) {
    v.zero_grad();
    w.zero_grad();
    const auto step = [&](const auto& c, const auto& x) {
      return std::pair((c * w + x).detach(), c * x);
    };
    const auto [last, ys] = xla::scan(step, v * v, xs);
    const auto loss = sum(last * last * w) + sum(ys * w);
    const auto [of_v, of_w] = xla::grad(loss, std::tie(v, w), {.create_graph = true});
    sum(of_v * of_v + of_w * of_w * w).backward();
    return std::tuple(of_v, of_w, v.grad(), w.grad());
  };
  const auto all = [](auto&& f, std::int64_t steps, bool eagerly) {
    const xla::eager_mode_guard mode(eagerly);
    auto v = test::parameter(numbers<double>({5}, 1)), w = test::parameter(numbers<double>({5}, 2));
    auto xs = numbers<double>({steps, 5}, 3);
    const auto [of_v, of_w, v_again, w_again] = f(v, w, xs);
    return std::array{of_v, of_w, v_again, w_again};
  };
  for (std::int64_t steps : {0, 1, 2}) {
    INFO(steps << " steps");
    const auto eager = all(train, steps, true), traced = all(train, steps, false);
    const auto compiled = all(xla::compile<xla::tags::verified>(train), steps, true);
    for (std::size_t k = 0; k < eager.size(); ++k) {
      test::check_equal(traced[k], eager[k], 1e-12);
      test::check_equal(compiled[k], eager[k], 1e-12);
    }
  }
  // One step of the numbers v, w and x: 2 (2 v w x) (2 v x) + (last^2 + v^2 x)^2.
  auto one = test::parameter(xla::tensor({1.5f})), by = test::parameter(xla::tensor({0.5f}));
  const auto x = xla::tensor({{0.25f}});
  const xla::eager_mode_guard traced(false);
  const auto made = train(one, by, x);
  const float last = 1.5f * 1.5f * 0.5f + 0.25f, sum_of_w = last * last + 1.5f * 1.5f * 0.25f;
  const float by_v = 2 * 1.5f * 0.5f * 0.25f;
  CHECK(std::get<0>(made)[0].item() == Approx(by_v));
  CHECK(std::get<3>(made)[0].item() ==
        Approx(2 * by_v * (2 * 1.5f * 0.25f) + sum_of_w * sum_of_w));
}

TEST_CASE("argument tensors and gradients from outside of a compiled function") {
  const auto f = [](auto& v, auto& xs) {
    const auto step = [](const auto& c, const auto& x) { return std::pair(c.detach() * x, x); };
    return sum(square(xla::scan(step, v * 2.0f, xs).first));
  };
  for (std::int64_t steps : {0, 2}) {
    INFO(steps << " steps");
    auto v = numbers<float>({5}).requires_grad_();
    auto xs = numbers<float>({steps, 5});
    auto train = xla::compile([](auto& v, auto& xs) {
      const auto step = [](const auto& c, const auto& x) { return std::pair(c.detach() * x, x); };
      const auto loss = sum(square(xla::scan(step, v * 2.0f, xs).first)) + sum(v);
      loss.backward();
      return loss;
    });
    train(v, xs);
    std::vector<float> want;
    for (float x : v.to_vector()) want.push_back(steps == 0 ? 8 * x + 1 : 1);
    CHECK(v.grad().to_vector() == want);
    auto outside = numbers<float>({5}).requires_grad_();
    auto compiled = xla::compile(f);
    (compiled(outside, xs) + sum(outside)).backward();
    CHECK(outside.grad().to_vector() == want);
  }
}

TEST_CASE("a while_loop() whose body cuts gradients off is refused for those of its first value") {
  for (bool is_eager : {true, false})
    for (float most : {10.0f, 0.0f}) {
      const xla::eager_mode_guard eager(is_eager);
      auto w = test::parameter(xla::ones<float>({3}));
      const auto last = xla::while_loop([&](const auto& c) { return sum(c) < most; },
                                        [&](const auto& c) { return (c * 2.0f).detach(); }, w * 2.0f);
      CHECK_THROWS_WITH(sum(last * w).backward(),
                        Catch::StartsWith("xla::while_loop has no gradient"));
    }
}
