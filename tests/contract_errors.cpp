// SPDX-License-Identifier: Apache-2.0
// Errors leave everything as it was.
#include "support/mlp.hpp"
#include "xla/xla.hpp"

using test::contains;
using test::batch;
using test::Mlp;
using test::mode;

namespace {

constexpr auto two_models = [](auto& a, auto& b, auto& data, auto& target, auto& loss_fn,
                               auto& for_a, auto& for_b) {
  for_a.zero_grad();
  for_b.zero_grad();
  auto loss = loss_fn(a(data), target) + loss_fn(b(data), target) * 2;
  loss.backward();
  for_a.step();
  for_b.step();
  return loss;
};

struct pair_of_models {
  Mlp a, b;
  xla::optim::SGD<Mlp> for_a{a, {.lr = 0.1, .momentum = 0.9}};
  xla::optim::SGD<Mlp> for_b{b, {.lr = 0.01}};
  xla::nn::CrossEntropyLoss loss_fn;
  test::snapshot state() { return test::state_of(a, b, for_a, for_b); }
};

/// A step that must throw E with `words`, and change nothing. Run statement by statement, zero_grad()
/// has dropped the gradients before the error; a compiled step keeps them as well.
template <class E, mode M, class Step>
void check_refused(Step step, batch good, batch bad, const std::string& words) {
  Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  step(model, good.data, good.target, loss_fn, optimizer);
  auto state = [&] {
    return M == mode::compiled ? test::state_of(model, optimizer)
                               : test::values_of(model, optimizer);
  };
  const auto before = state();
  CHECK(before.size() == (M == mode::compiled ? 13 : 9));  // and the count of steps
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_AS(step(model, bad.data, bad.target, loss_fn, optimizer), E);
    CHECK(state().difference(before) == "");
  }
  CHECK_THROWS_WITH(step(model, bad.data, bad.target, loss_fn, optimizer), contains(words));
  CHECK_NOTHROW(step(model, good.data, good.target, loss_fn, optimizer));
  CHECK(state().difference(before) != "");
}

template <class E>
void check_refused_in_every_mode(batch bad, const std::string& words) {
  const xla::eager_mode_guard guard;
  {
    INFO("eager");
    check_refused<E, mode::eager>(test::step_fn, batch(8), bad, words);
  }
  {
    INFO("compiled");
    auto step = xla::compile(test::step_fn);
    check_refused<E, mode::compiled>([&](auto&... a) { return step(a...); }, batch(8), bad, words);
  }
  INFO("traced");
  xla::eager_mode(false);
  auto step = [](auto&... a) {
    auto loss = test::step_fn(a...);
    xla::sync();
    return loss;
  };
  check_refused<E, mode::traced>(step, batch(8), bad, words);
}

}  // namespace

TEST_CASE("two models of one type train with their optimizers") {
  auto train = [](auto run) {
    xla::manual_seed(9);
    pair_of_models m;
    for (std::uint64_t i = 0; i < 5; ++i) {
      batch b(8, i);
      run(m.a, m.b, b.data, b.target, m.loss_fn, m.for_a, m.for_b);
    }
    return m.state();
  };
  const xla::eager_mode_guard guard;
  const auto eager = train(two_models);
  auto step = xla::compile(two_models);
  CHECK(train([&](auto&... a) { step(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(train(two_models).difference(eager) == "");
}

TEST_CASE("optimizers in another order than their models are refused before anything is touched") {
  const xla::eager_mode_guard guard;
  pair_of_models m;
  Mlp stranger;
  auto step = xla::compile(two_models);
  batch b(8);
  const auto fresh = m.state();
  CHECK_THROWS_AS(step(m.a, m.b, b.data, b.target, m.loss_fn, m.for_b, m.for_a), xla::error);
  CHECK(m.state().difference(fresh) == "");
  step(m.a, m.b, b.data, b.target, m.loss_fn, m.for_a, m.for_b);
  const auto before = m.state();
  CHECK_THROWS_WITH(step(m.a, m.b, b.data, b.target, m.loss_fn, m.for_b, m.for_a),
                    contains("optimizer of another model"));
  CHECK_THROWS_AS(step(m.b, m.a, b.data, b.target, m.loss_fn, m.for_a, m.for_b), xla::error);
  CHECK_THROWS_AS(step(m.a, stranger, b.data, b.target, m.loss_fn, m.for_a, m.for_b), xla::error);
  CHECK(m.state().difference(before) == "");
}

TEST_CASE("a label out of range is an index_error and changes nothing") {
  for (const std::int64_t label : {std::int64_t{5}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    batch bad(8);
    auto t = bad.target.to_vector();
    t[3] = label;
    bad.target = xla::tensor(t);
    check_refused_in_every_mode<xla::index_error>(bad, std::to_string(label));
  }
}

TEST_CASE("data and labels of different lengths are a shape_error and change nothing") {
  batch bad(8);
  bad.target = batch(7).target;
  check_refused_in_every_mode<xla::shape_error>(bad, "cross_entropy");
}

TEST_CASE("data of another width is a shape_error with both shapes") {
  batch bad(8);
  bad.data = test::numbers<float>({8, 16});
  check_refused_in_every_mode<xla::shape_error>(bad, "16");
}

TEST_CASE("a size that differs from what the type fixes is refused with its path") {
  const xla::eager_mode_guard eager;
  Mlp model;
  model.fc1 = xla::nn::Linear(17, 40);
  model.fc2 = xla::nn::Linear(40, 5);
  auto predict = xla::compile(model);
  const batch b(4);
  CHECK(model(b.data).sizes() == test::sizes_t{4, 5});
  CHECK_THROWS_AS(predict(b.data), xla::shape_error);
  CHECK_THROWS_WITH(predict(b.data), contains("fc1.weight") && contains("(40, 17)") &&
                                         contains("(33, 17)"));
}

TEST_CASE("more shapes than allowed are refused") {
  const xla::eager_mode_guard eager;
  auto twice = xla::compile([](auto& x) { return x * 2; }, {.name = "twice", .max_signatures = 2});
  auto one = xla::ones<float>({1}), two = xla::ones<float>({2}), three = xla::ones<float>({3});
  CHECK(twice(one).sizes() == test::sizes_t{1});
  CHECK(twice(two).sizes() == test::sizes_t{2});
  CHECK_THROWS_WITH(twice(three), contains("twice") && contains("2"));
  CHECK(twice(two).sizes() == test::sizes_t{2});
}

TEST_CASE("an empty tensor as an argument is refused") {
  const xla::eager_mode_guard eager;
  auto twice = xla::compile([](auto& x) { return x * 2; });
  xla::Tensor<float, 1> nothing;
  CHECK_THROWS_WITH(twice(nothing), contains("argument 0 is an empty tensor"));
  CHECK_THROWS_AS(nothing * 2, xla::error);
}
