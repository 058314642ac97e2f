// SPDX-License-Identifier: Apache-2.0
// A copy of a tensor has its gradient until one of the two is written, in every mode.
#include "support/inputs.hpp"
#include "xla/xla.hpp"

using test::check;
using test::few_passes;
using test::in_every_mode;
using test::input;
using test::numbers;

TEST_CASE("a copy of a tensor has its gradient until one of the two is written, in a body") {
  const auto wanted = [] { return std::tuple(input(true)); };
  const auto plain = [] { return std::tuple(input(false)); };
  SECTION("by value, read and written") {
    check(
        [](auto& x) {
          const auto read = [](auto y) { xla::sum(y * y).backward(); };
          const auto write = [](auto y) {
            y.zero_grad();
            xla::sum(y * y * y).backward();
            return y.grad();
          };
          read(x);
          const auto own = write(x);
          read(x);
          return std::pair(own, x.grad());
        },
        wanted);
  }
  SECTION("gradients dropped and replaced through a copy") {
    const auto body = [](auto& x) {
      xla::sum(x * x).backward();
      auto a = x, b = x, c = x;
      a.zero_grad();
      b.set_grad(b.grad() * 3);
      xla::sum(x * a * b * c).backward();
      return std::tuple(x.grad(), a.grad(), b.grad(), c.grad());
    };
    check(body, wanted);
    check<few_passes>(body, wanted);
  }
  SECTION("required of a copy, and no longer") {
    const auto body = [](auto& x) {
      auto a = x;
      a.requires_grad_();
      auto b = a;
      b.requires_grad_(false);
      auto loss = xla::sum(a * a * b);
      loss.backward();
      b.requires_grad_();
      xla::sum(a * b).backward();
      return std::tuple(a.grad(), b.grad(), x * 1);
    };
    check(body, plain);
    check(body, wanted);
  }
  SECTION("changed in place, whole and in part, after a snapshot") {
    const auto body = [](auto& x) {
      xla::sum(x * x).backward();
      const auto old = x;
      xla::no_grad(x, [&] { x -= 0.1f * x.grad(); });
      const auto moved = x;
      x[0][1] = 2.f;
      x.zero_grad();
      xla::sum(x * x * x * old * moved).backward();
      return std::tuple(old.grad(), moved.grad(), x.grad());
    };
    check(body, wanted);
    check<few_passes>(body, wanted);
  }
}

TEST_CASE("a copy of an argument keeps its gradient") {
  const std::vector<float> two(30, 2), three(30, 3), six(30, 6);
  const auto leaf = [] {
    auto x = xla::full<float>({6, 5}, 1);
    x.requires_grad_();
    xla::sum(x * 2).backward();
    return x;
  };
  SECTION("its own is dropped") {
    in_every_mode(
        [](auto& x) {
          x.zero_grad();
          xla::sum(x * 3).backward();
        },
        [&](auto&& call) {
          auto x = leaf(), old = x;
          call(x);
          CHECK(x.grad().to_vector() == three);
          CHECK(old.grad().to_vector() == two);
          call(old);
          CHECK(x.grad().to_vector() == three);
          CHECK(old.grad().to_vector() == three);
        });
  }
  SECTION("its own is changed with its value") {
    in_every_mode(
        [](auto& x) {
          x += 1;
          xla::sum(x * x).backward();
        },
        [&](auto&& call) {
          auto x = leaf(), old = x;
          call(x);
          CHECK(x.grad().to_vector() == six);
          CHECK(old.grad().to_vector() == two);
          xla::sum(old * 4).backward();
          CHECK(x.grad().to_vector() == six);
          CHECK(old.grad().to_vector() == six);
        });
  }
  SECTION("an element of it is assigned") {
    in_every_mode([](auto& x) { x[0][0] = 5.f; },
                  [&](auto&& call) {
                    auto x = leaf(), old = x;
                    call(x);
                    xla::sum(x * 4).backward();
                    CHECK(x.grad().to_vector() == six);
                    CHECK(old.grad().to_vector() == two);
                  });
  }
  SECTION("it requires none any more, and one again") {
    in_every_mode([](auto& x) { x.requires_grad_(false); },
                  [&](auto&& call) {
                    auto x = leaf(), old = x;
                    call(x);
                    CHECK_FALSE(x.requires_grad());
                    CHECK(x.grad().to_vector() == two);
                    CHECK(old.requires_grad());
                    x.requires_grad_();
                    xla::sum(old * 4).backward();
                    CHECK(x.grad().to_vector() == two);
                    CHECK(old.grad().to_vector() == six);
                  });
  }
  SECTION("it alone requires one") {
    in_every_mode([](auto& x) { x.requires_grad_(); },
                  [&](auto&& call) {
                    auto x = xla::full<float>({6, 5}, 1), old = x;
                    call(x);
                    CHECK(x.requires_grad());
                    CHECK_FALSE(old.requires_grad());
                    xla::sum(x * old * 2).backward();
                    CHECK(x.grad().to_vector() == two);
                    CHECK_FALSE(old.grad().defined());
                  });
  }
  SECTION("its own is replaced") {
    in_every_mode([](auto& x) { x.set_grad(x.detach() * 3); },
                  [&](auto&& call) {
                    auto x = leaf(), old = x;
                    call(x);
                    CHECK(x.grad().to_vector() == three);
                    CHECK(old.grad().to_vector() == two);
                  });
  }
  SECTION("by value the caller's is filled, and written alone") {
    in_every_mode(
        [](auto x, auto y) {
          xla::sum(x * y).backward();
          y.zero_grad();
          xla::sum(x * y).backward();
        },
        [&](auto&& call) {
          auto x = leaf(), y = leaf();
          call(x, y);
          CHECK(x.grad().to_vector() == std::vector<float>(30, 4));
          CHECK(y.grad().to_vector() == three);
        });
  }
}

TEST_CASE("two arguments that are copies of one tensor are changed separately") {
  in_every_mode(
      [](auto& x, auto& y) {
        x.zero_grad();
        xla::sum(x * y.detach() * 3).backward();
        y -= 1;
      },
      [](auto&& call) {
        auto x = xla::full<float>({2}, 1);
        x.requires_grad_();
        xla::sum(x * 2).backward();
        auto y = x, old = x;
        call(x, y);
        CHECK(x.grad().to_vector() == std::vector<float>(2, 3));
        CHECK(y.grad().to_vector() == std::vector<float>(2, 2));
        CHECK(old.grad().to_vector() == std::vector<float>(2, 2));
        CHECK(y.to_vector() == std::vector<float>(2, 0));
        CHECK(x.to_vector() == std::vector<float>(2, 1));
      });
}

TEST_CASE("a step by hand: the loss, the gradient, the update, every call") {
  for (const bool input_too : {true, false})
    check(
        [](auto& w, auto& x) {
          auto loss = xla::mean((xla::matmul(x, w) - 1) * (xla::matmul(x, w) - 1));
          loss.backward();
          xla::no_grad(w, [&] { w -= 0.1f * w.grad(); });
          w.zero_grad();
          return loss;
        },
        [&] {
          auto w = numbers<float>({5, 3}, 2);
          w.requires_grad_();
          return std::tuple(w, input(input_too));
        });
}

TEST_CASE("a copy of a parameter is written without it") {
  const auto body = [](auto& p) {
    xla::sum(p * p).backward();
    xla::Tensor<float, 2> w = p, fixed = p, other = p;
    w.zero_grad();
    fixed.requires_grad_(false);
    other.set_grad(other.grad() * 2);
    auto loss = xla::sum(p * w * fixed * other);
    loss.backward();
    p.copy_(p.detach() - 0.1f * p.grad());
    return std::tuple(loss, w.grad(), other.grad());
  };
  const auto make = [] { return std::tuple(test::parameter(numbers<float>({6, 5}, 1))); };
  check(body, make);
  const xla::eager_mode_guard eager;
  auto [p] = make();
  xla::Tensor<float, 2> w = p;
  w.requires_grad_(false);
  CHECK(p.requires_grad());
  xla::sum(p * 2).backward();
  w = p;
  w.zero_grad();
  CHECK(p.grad().to_vector() == std::vector<float>(30, 2));
  CHECK_FALSE(w.grad().defined());
}

TEST_CASE("an argument that becomes another one has its gradient") {
  check(
      [](auto& x, auto& y) {
        x = y;
        xla::sum(y * y).backward();
        return xla::sum(x);
      },
      [] { return std::tuple(input(false, 2), input(true)); });
}

TEST_CASE("a gradient that nobody will see is not written") {
  const xla::eager_mode_guard eager;
  auto step = xla::compile([](auto& w) {
    xla::sum(xla::exp(w)).backward();
    xla::no_grad(w, [&] { w -= 0.1f * w.grad(); });
    w.zero_grad();
  });
  auto w = input(true);
  const auto outputs = [&] { return step.memory_analysis(w).outputs; };
  const auto alone = outputs();
  const auto old = w;
  CHECK(outputs() - alone == 6 * 5 * 4);
  step(w);
  test::check_equal(old.grad(), xla::exp(old).detach());
}

TEST_CASE("backward() outside reaches what a call has left in its arguments") {
  const auto told = [](auto& x) {
    x.requires_grad_();
    auto y = x;
    y.zero_grad();
    return xla::sum(x * x * y);
  };
  const auto changed = [](auto& x) {
    const auto y = x;
    x *= 2;
    return xla::sum(x * x * y);
  };
  const auto run = [](auto&& f, bool wanted, float expected) {
    auto x = xla::full<float>({2}, 3);
    if (wanted) x.requires_grad_();
    auto old = x;
    f(x).backward();
    CHECK(x.grad().to_vector() == std::vector<float>(2, expected));
    CHECK(old.grad().defined() == wanted);
    if (wanted) CHECK(old.grad().to_vector() == std::vector<float>(2, 36));
  };
  auto compiled_told = xla::compile(told);
  auto compiled_changed = xla::compile(changed);
  for (const bool on : {true, false}) {
    const xla::eager_mode_guard guard(on);
    run(told, false, 18);
    run(compiled_told, false, 18);
    run(changed, true, 36);
    run(compiled_changed, true, 36);
  }
}
