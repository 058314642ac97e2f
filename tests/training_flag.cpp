// SPDX-License-Identifier: Apache-2.0
#include "support/modes.hpp"
#include "xla/nn/linear.hpp"
#include "xla/run/trace/step.hpp"

using test::numbers;

namespace {

// Doubles its input while training.
struct Loud {
  xla::TrainingFlag training;
  constexpr auto operator()(const xla::Tensor<float, 1>& x) const { return training ? x * 2 : x; }
  XLA_MODULE(training)
};
struct Pair {
  Loud first, second;
  constexpr auto operator()(const xla::Tensor<float, 1>& x) const { return second(first(x)); }
  XLA_MODULE(first, second)
};
struct Quiet {
  xla::TrainingFlag training;
  constexpr auto operator()(const xla::Tensor<float, 1>& x) const { return x + 1; }
  XLA_MODULE(training)
};

const auto call = [](auto& model, auto& x) { return model(x); };

}  // namespace

TEST_CASE("train() and eval() set the flag of every module in a model") {
  const xla::eager_mode_guard eager;
  Pair model;
  CHECK(model.is_training());
  CHECK(model(xla::ones<float>({1})).to_vector() == std::vector<float>{4});
  model.eval();
  CHECK_FALSE(model.is_training());
  CHECK_FALSE(model.first.training);
  CHECK(model(xla::ones<float>({1})).to_vector() == std::vector<float>{1});
  model.second.train();
  CHECK_FALSE(model.is_training());
  CHECK(model(xla::ones<float>({1})).to_vector() == std::vector<float>{2});
}

TEST_CASE("a step is compiled for training, a module for evaluation; another flag is refused") {
  Pair model;
  const auto x = xla::ones<float>({2});
  auto step = xla::compile(call);
  auto predict = xla::compile(model);
  CHECK(step(model, x).to_vector() == std::vector<float>{4, 4});
  CHECK_THROWS_WITH(predict(x), test::contains("argument 0.first.training says training") &&
                                    test::contains("call eval() on the model first"));
  model.eval();
  CHECK(predict(x).to_vector() == std::vector<float>{1, 1});
  CHECK_THROWS_WITH(step(model, x), test::contains("argument 0.first.training says evaluation") &&
                                        test::contains("call train() on the model first") &&
                                        test::contains("or eval() on it in the function's body"));
  model.first.train();
  CHECK_THROWS_WITH(step(model, x), test::contains("argument 0.second.training"));
}

TEST_CASE("a flag that the body does not read may differ, and the body may set it") {
  Quiet quiet;
  const auto x = xla::ones<float>({1});
  auto step = xla::compile(call);
  CHECK(step(quiet, x).to_vector() == std::vector<float>{2});
  quiet.eval();
  CHECK(step(quiet, x).to_vector() == std::vector<float>{2});

  Pair model;
  auto evaluate = xla::compile([](auto& m, auto& v) {
    m.eval();
    return m(v);
  });
  CHECK(evaluate(model, x).to_vector() == std::vector<float>{1});
  CHECK_FALSE(model.is_training());
  CHECK(evaluate(model, x).to_vector() == std::vector<float>{1});
}

TEST_CASE("a model stays as a body set it, in every mode") {
  auto evaluate = [](auto& m, auto& v) {
    auto before = m(v);
    m.eval();
    auto y = before + m(v);
    m.second.train();
    return y;
  };
  for (const test::mode mode : {test::mode::eager, test::mode::traced, test::mode::compiled}) {
    const xla::eager_mode_guard guard(mode == test::mode::eager);
    Pair model;
    const auto x = xla::ones<float>({1});
    auto compiled = xla::compile(evaluate);
    auto y = mode == test::mode::compiled ? compiled(model, x) : evaluate(model, x);
    CHECK(y.item() == 5);
    CHECK_FALSE(model.first.training);
    CHECK(model.second.training);
    if (mode != test::mode::compiled) continue;
    CHECK_THROWS_WITH(compiled(model, x), test::contains("0.first.training says evaluation"));
    model.train();
    CHECK(compiled(model, x).item() == 5);
  }
}

TEST_CASE("no_grad in every mode") {
  test::check_modes(
      [](auto& p, auto& x) {
        auto scale = xla::no_grad(p, [&] { return sum(p * p); });
        auto loss = sum(p * x) * scale;
        loss.backward();
        return loss;
      },
      test::parameter(numbers<float>({5})), numbers<float>({5}, 1));
}

TEST_CASE("set_grad replaces what backward() collected") {
  auto p = test::parameter(numbers<float>({5}));
  test::check_modes(
      [](auto& q, auto& x) {
        sum(q * x).backward();
        q.set_grad(q.grad() * 0.5f);
        return q.grad();
      },
      p, numbers<float>({5}, 1));
  const xla::eager_mode_guard eager;
  sum(p * 1.f).backward();
  p.set_grad(p.grad() * 0.5f);
  CHECK(p.grad().to_vector() == std::vector<float>(5, 0.5f));
  CHECK_THROWS_WITH(p.set_grad(xla::ones<float>({4})),
                    test::contains("set_grad") && test::contains("(4,)") && test::contains("(5,)"));
}

TEST_CASE("a model may be a struct inside a function") {
  struct Inside {
    Loud loud;
    constexpr auto operator()(xla::Tensor<float, 1> x) const { return loud(x) + 1.f; }
    XLA_MODULE(loud)
  };
  const xla::eager_mode_guard eager;
  Inside model;
  model.eval();
  auto predict = xla::compile(model);
  CHECK(predict(xla::ones<float>({1})).to_vector() == std::vector<float>{2});
}
