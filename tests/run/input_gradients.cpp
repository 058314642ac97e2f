// SPDX-License-Identifier: Apache-2.0
// backward() in a step gives gradients to the tensors that it is called with, where they require
// them: the same in every mode.
#include "support/inputs.hpp"
#include "support/mlp.hpp"
#include "xla/xla.hpp"

using test::add_state;
using test::check;
using test::contains;
using test::few_passes;
using test::input;
using test::mode;
using test::numbers;
namespace nn = xla::nn;
namespace optim = xla::optim;

namespace {

struct Net {
  nn::LayerNorm norm{5};
  nn::Linear fc1{5, 7}, fc2{7, 3};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const {
    return fc2(xla::relu(fc1(norm(x))));
  }
  XLA_MODULE(norm, fc1, fc2)
};

constexpr auto train = [](auto& model, auto& x, auto& target, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = xla::mse_loss(model(x), target) + 0.1f * xla::mean(xla::abs(x));
  loss.backward();
  optimizer.step();
  return loss;
};

/// Steps in which now one tensor, now another requires a gradient.
test::snapshot train_in(mode m, auto& step) {
  const xla::eager_mode_guard guard(m != mode::traced);
  xla::manual_seed(4);
  Net model;
  optim::AdamW optimizer{model, {.lr = 0.1f}};
  auto x = numbers<float>({6, 5}, 1);
  auto target = numbers<float>({6, 3}, 2);
  test::snapshot all;
  for (int i = 0; i < 6; ++i) {
    x.requires_grad_(i == 1 || i == 2 || i == 5);
    target.requires_grad_(i == 2 || i == 3);
    if (i == 4) model.fc1.weight.requires_grad_(false);
    if (i == 5) x.zero_grad();
    all.add(step(model, x, target, optimizer));
    xla::sync();
    CHECK(x.grad().defined() == (i > 0));
    CHECK(target.grad().defined() == (i > 1));
    add_state(all, x);
    add_state(all, target);
    all.add(model);
  }
  return all;
}

}  // namespace

TEST_CASE("an input that requires a gradient gets it from a step, and adds it up") {
  const auto eager = train_in(mode::eager, train);
  auto compiled = xla::compile(train);
  CHECK(train_in(mode::compiled, compiled).difference(eager) == "");
  CHECK(train_in(mode::traced, train).difference(eager) == "");
  const test::on_backend op_by_op("interpreter");
  CHECK(train_in(mode::compiled, compiled).difference(eager) == "");
}

TEST_CASE("a step whose inputs require no gradient computes none for them") {
  const xla::eager_mode_guard eager;
  Net model;
  optim::SGD optimizer{model, {.lr = 0.1f}};
  auto target = numbers<float>({6, 3}, 2);
  auto step = xla::compile(train);
  auto x = input(false);
  const auto outputs = [&] { return step.memory_analysis(model, x, target, optimizer).outputs; };
  const auto without = outputs();
  x.requires_grad_();
  CHECK(outputs() - without == 6 * 5 * 4);
  nn::Linear layer{5, 3};
  auto first = xla::compile([](auto& m, auto& a) { xla::sum(xla::exp(m(a))).backward(); });
  const test::on_backend op_by_op("interpreter");
  const auto products = [&] {
    const auto before = test::count_of("xla::matmul");
    first(layer, x);
    return test::count_of("xla::matmul") - before;
  };
  CHECK(products() == 3);
  x.requires_grad_(false);
  CHECK(products() == 2);
}

TEST_CASE("the body says that its input requires a gradient, reads it and writes it") {
  const auto plain = [] { return std::tuple(input(false)); };
  const auto wanted = [] { return std::tuple(input(true)); };
  SECTION("said in the body, and not to copies from before") {
    const auto body = [](auto& x) {
      const auto same = x;
      x.requires_grad_();
      auto loss = xla::sum(x * x * same);
      loss.backward();
      return std::pair(loss, x.grad());
    };
    check(body, plain);
    check(body, wanted);
    check<few_passes>(body, wanted);
  }
  SECTION("the fast gradient sign") {
    const auto body = [](auto& x) {
      x.requires_grad_();
      x.zero_grad();
      xla::sum(xla::exp(x) * x).backward();
      return x.detach() + 0.1f * xla::sign(x.grad());
    };
    check(body, plain);
    check(body, wanted);
  }
  SECTION("descent on the input itself, which the caller asked for") {
    check(
        [](auto& x) {
          x.zero_grad();
          auto loss = xla::sum(x * x * x);
          loss.backward();
          xla::no_grad(x, [&] { x -= 0.1f * x.grad(); });
          return loss;
        },
        wanted);
  }
  SECTION("twice in a call, with what was changed in place between") {
    check<few_passes>(
        [](auto& x) {
          xla::sum(xla::exp(x)).backward();
          x *= 2;
          auto loss = xla::sum(x * x);
          loss.backward();
          return std::pair(loss, x.grad());
        },
        wanted);
  }
  SECTION("changed in place by itself where it need not require one") {
    const auto body = [](auto& x, auto& w) {
      x *= 2;
      x += 1;
      auto loss = xla::sum(x * x * w);
      loss.backward();
      return loss;
    };
    for (const bool x : {false, true})
      check(body, [x] { return std::tuple(input(x), test::parameter(numbers<float>({6, 5}, 2))); });
  }
  SECTION("set, and absent") {
    check<few_passes>(
        [](auto& x) {
          x.set_grad(x.detach() * 2);
          xla::sum(x * x).backward();
          return x.grad();
        },
        wanted);
    check(
        [](auto& x) {
          auto loss = xla::sum(x * x);
          loss.backward();
          x.zero_grad();
          return loss;
        },
        wanted);
  }
  SECTION("said that it requires none") {
    check(
        [](auto& x, auto& w) {
          x.requires_grad_(false);
          auto loss = xla::sum(x * w);
          loss.backward();
          return loss;
        },
        [] {
          return std::tuple(input(true), test::parameter(numbers<float>({6, 5}, 2)));
        });
  }
}

TEST_CASE("inputs among others: detached, checkpointed, own gradients, other types") {
  for (const bool first : {false, true})
    for (const bool second : {false, true}) {
      if (!first && !second) continue;
      const auto make = [=] { return std::tuple(input(first), input(second, 2)); };
      check(
          [](auto& x, auto& y) {
            const auto h = xla::checkpoint([](auto& a, auto& b) { return xla::tanh(a * b); }, x, y);
            auto loss = xla::mean(h * xla::softmax(x, 1) * y.detach()) + xla::sum(x + y);
            loss.backward();
            return loss;
          },
          make);
    }
  check(
      [](auto& x) {
        xla::sum(xla::cast<double>(x)).backward();
        auto y = x.detach();
        y.requires_grad_();
        xla::sum(y * y * y).backward();
        y -= 0.5 * y.grad();
        xla::sum(y * y).backward();
        return std::tuple(y, y.grad(), xla::grad(xla::sum(y * y), y));
      },
      [] { return std::tuple(input<double>(true)); });
}

TEST_CASE("unsupported uses of an input's gradient are errors") {
  const xla::eager_mode_guard eager;
  auto both = xla::compile([](auto& x, auto& y) {
    auto loss = xla::sum(x * y);
    loss.backward();
    return loss;
  });
  auto x = input(false), y = input(false, 2);
  CHECK_THROWS_WITH(both(x, x), contains("requires a gradient"));
  y.requires_grad_();
  both(x, y);
  CHECK_FALSE(x.grad().defined());
  x.requires_grad_();
  auto same = x;
  CHECK_THROWS_WITH(both(x, x), contains("argument 1 is the same as argument 0"));
  CHECK_THROWS_WITH(both(x, same), contains("argument 1 is the same as argument 0"));
  CHECK_FALSE(x.grad().defined());
  both(x, y);
  test::check_equal(x.grad(), y.detach());
  auto z = x * 2;
  CHECK_THROWS_WITH(both(z, y), contains("argument 0 is computed from tensors"));

  auto told = xla::compile([](auto& a, auto& b) {
    a.requires_grad_();
    auto loss = xla::sum(a * b);
    loss.backward();
    return loss;
  });
  auto p = input(false);
  CHECK_THROWS_WITH(told(p, p), contains("argument 1 is the same as argument 0"));
  CHECK_THROWS_WITH(told(z, y), contains("argument 0 is computed from tensors"));
  CHECK_FALSE(p.requires_grad());

  auto read = xla::compile([](auto& a) {
    xla::sum(a * a).backward();
    return a.grad() * 2;
  });
  CHECK_THROWS_WITH(read(p), contains("argument 0 does not require a gradient"));
  auto given = xla::compile([](auto& a) { return a.grad() * 2; });
  CHECK_THROWS_WITH(given(p), contains("argument 0 has no gradient"));
  test::check_equal(given(x), y.detach() * 2);
  auto set = xla::compile([](auto& a) {
    a.set_grad(a.detach());
    return xla::sum(a);
  });
  CHECK_THROWS_WITH(set(p), contains("argument 0 does not require a gradient"));

  auto tangled = xla::compile([](auto& a, auto& b) {
    a += b;
    auto loss = xla::sum(a * a);
    loss.backward();
    return loss;
  });
  p.requires_grad_();
  CHECK_THROWS_WITH(tangled(p, y), contains("argument 0 requires a gradient, and the function"));
}

TEST_CASE("a detached tensor is another one") {
  for (const bool on : {true, false}) {
    const xla::eager_mode_guard guard(on);
    auto x = numbers<float>({4}, 1);
    auto y = x.detach();
    y.requires_grad_();
    CHECK(y.requires_grad());
    CHECK_FALSE(x.requires_grad());
    sum(x * y).backward();
    test::check_equal(y.grad(), x);
    xla::Parameter<float, 1> p = x;
    CHECK(p.requires_grad());
    CHECK_FALSE(x.requires_grad());
  }
}
