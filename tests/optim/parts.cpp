// SPDX-License-Identifier: Apache-2.0
// Parts of models, several models and groups of parameters as what an optimizer is for.
#include <cmath>

#include "support/weights.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/average.hpp"
#include "xla/optim/schedule.hpp"
#include "xla/optim/sgd.hpp"
#include "xla/run/state/metrics.hpp"

using test::numbers;
namespace optim = xla::optim;

namespace {

struct Big {
  test::Weights body, head;
  XLA_MODULE(body, head)
};

constexpr auto step_fn = [](auto& model, auto& x, auto& slow, auto& fast) {
  slow.zero_grad();
  fast.zero_grad();
  (test::weights_loss(model.body, x) + test::weights_loss(model.head, x)).backward();
  slow.step();
  fast.step();
};

}  // namespace

TEST_CASE("two parts of a model learn at different rates, the same in every mode") {
  const xla::eager_mode_guard guard;
  auto x = numbers<float>({5, 7}, 3);
  auto train = [&](auto run) {
    Big model{test::make_weights(), test::make_weights()};
    optim::SGD slow{xla::part<&Big::body>(model), {.lr = 0.01}};
    optim::SGD fast{xla::part<&Big::head>(model), {.lr = 0.1}};
    optim::StepLR schedule{fast, {.step_size = 2, .gamma = 0.5}};
    double left = 1, left_fast = 1;  // of b, whose gradient is 2 b
    for (int i = 0; i < 6; ++i) {
      left *= 1 - 2 * 0.01;
      left_fast *= 1 - 2 * fast.options.lr.value();
      run(model, x, slow, fast);
      schedule.step();
    }
    const auto b = numbers<float>({7}, 2);
    test::check_equal(model.body.b, {7}, (b * left).to_vector(), 1e-6);
    test::check_equal(model.head.b, {7}, (b * left_fast).to_vector(), 1e-6);
    test::snapshot s;
    s.add(model);
    return s;
  };
  const auto eager = train(step_fn);
  const auto graphs = xla::counter_value("UncachedCompile").value_or(0);
  auto compiled = xla::compile(step_fn);
  CHECK(train([&](auto&... a) { compiled(a...); }).difference(eager) == "");
  CHECK(xla::counter_value("UncachedCompile").value_or(0) == graphs + 1);
  xla::eager_mode(false);
  CHECK(train(step_fn).difference(eager) == "");
}

TEST_CASE("two optimizers of one model, of different kinds, are both for it") {
  const xla::eager_mode_guard eager;
  auto x = numbers<float>({5, 7}, 3);
  auto step = [](auto& model, auto& v, auto& a, auto& b) {
    a.zero_grad();
    test::weights_loss(model, v).backward();
    a.step();
    b.step();
  };
  auto model = test::make_weights(), same = test::make_weights(), other = test::make_weights();
  optim::SGD sgd{model, {.lr = 0.1}}, sgd_same{same, {.lr = 0.1}};
  optim::AdamW adam{model, {.lr = 0.1}}, adam_same{same, {.lr = 0.1}}, wrong{other, {.lr = 0.1}};
  auto compiled = xla::compile(step);
  compiled(model, x, sgd, adam);
  step(same, x, sgd_same, adam_same);
  test::check_equal(model.w, same.w);
  CHECK_THROWS_WITH(compiled(model, x, sgd, wrong), test::contains("another model"));
}

namespace {

struct Small {
  test::Weights body;
  XLA_MODULE(body)
};

struct Deep {
  Big left;
  std::array<test::Weights, 2> right;
  XLA_MODULE(left, right)
};

Deep make_deep() {
  return {{test::make_weights(), test::make_weights()},
          {test::make_weights(), test::make_weights()}};
}

constexpr auto deep_loss(auto& m, auto& x) {
  return test::weights_loss(m.left.body, x) + test::weights_loss(m.left.head, x) +
         test::weights_loss(m.right[0], x) * 0.5 + test::weights_loss(m.right[1], x) * 2;
}

/// The same bits of what train(run) returns in every mode, run being the step in that mode.
template <class Step, class Train>
void check_in_modes(Step step, Train train) {
  const xla::eager_mode_guard guard;
  const test::snapshot eager = train(step);
  CHECK(eager.size() > 0);
  auto compiled = xla::compile(step);
  CHECK(train([&](auto&... a) { compiled(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(train(step).difference(eager) == "");
}

constexpr auto is_vector = [](std::string_view, int rank) { return rank < 2; };
constexpr auto is_left = [](std::string_view name, int rank) {
  return name.starts_with("left.") && rank == 2;
};

}  // namespace

TEST_CASE("groups of parameters have options of their own, as optimizers of their own would") {
  auto x = numbers<float>({5, 7}, 3);
  auto step = [](auto& model, auto& v, auto& optimizer) {
    optimizer.zero_grad();
    deep_loss(model, v).backward();
    optimizer.step();
  };
  check_in_modes(step, [&](auto run) {
    auto model = make_deep(), left = make_deep(), vectors = make_deep(), rest = make_deep();
    optim::AdamW optimizer{model,
                           {.lr = 0.1, .beta2 = 0.9, .weight_decay = 0.5},
                           optim::group(is_vector, [](auto& o) { o.weight_decay = 0; }),
                           optim::group(is_left, [](auto& o) { o.lr = 0.01, o.beta1 = 0.5; })};
    static_assert(optimizer.groups == 2);
    CHECK(optimizer.group_options[0].lr.value() == 0.1);
    optim::StepLR schedule{optimizer, {.step_size = 1, .gamma = 0.5}};
    optim::AdamW for_rest{rest, {.lr = 0.1, .beta2 = 0.9, .weight_decay = 0.5}};
    optim::AdamW for_vectors{vectors, {.lr = 0.1, .beta2 = 0.9, .weight_decay = 0}};
    optim::AdamW for_left{left, {.lr = 0.01, .beta1 = 0.5, .beta2 = 0.9, .weight_decay = 0.5}};
    for (int i = 0; i < 4; ++i) {
      run(model, x, optimizer);
      run(rest, x, for_rest);
      run(vectors, x, for_vectors);
      run(left, x, for_left);
      schedule.step();
      for_rest.options.lr = for_vectors.options.lr = 0.1 * std::pow(0.5, i + 1);
      for_left.options.lr = 0.01 * std::pow(0.5, i + 1);
      if (i == 1) optimizer.group_options[0].weight_decay = for_vectors.options.weight_decay = 0.2;
    }
    for (auto* m : {&model.left.body, &model.left.head, &model.right[0], &model.right[1]}) {
      const auto same = [&](Deep& o) -> test::Weights& {
        return m == &model.left.body   ? o.left.body
               : m == &model.left.head ? o.left.head
                                       : o.right[static_cast<std::size_t>(m - &model.right[0])];
      };
      CHECK(m->b.to_vector() == same(vectors).b.to_vector());
      const bool in_left = m == &model.left.body || m == &model.left.head;
      CHECK(m->w.to_vector() == same(in_left ? left : rest).w.to_vector());
      CHECK(m->w.to_vector() != same(in_left ? rest : left).w.to_vector());
    }
    test::snapshot s;
    s.add(model);
    return s;
  });
}

TEST_CASE("groups are counted and named, and a checkpoint keeps their options and rates") {
  const xla::eager_mode_guard guard;
  auto model = make_deep();
  const auto halved = [](auto& o) { o.lr = o.lr.value() / 2; };
  optim::SGD a{model, {.lr = 0.5}, optim::group(is_left, halved)};
  optim::SGD b{model, {.lr = 0.1}, optim::group(is_left, halved)};
  optim::ExponentialLR for_a{a, {.gamma = 0.5}}, for_b{b, {.gamma = 0.5}};
  for_a.step();
  CHECK(a.options.lr.value() == 0.25);
  CHECK(a.group_options[0].lr.value() == 0.125);
  const auto dict = xla::state_dict(a), rates = xla::state_dict(for_a);
  CHECK(dict.back().name == "group_options.0.nesterov");
  CHECK(rates.back().name == "base_lr.0");
  xla::load_state_dict(b, dict);
  xla::load_state_dict(for_b, rates);
  CHECK(xla::state_dict(b) == dict);
  CHECK(xla::state_dict(for_b) == rates);
  for_b.step();
  CHECK(b.group_options[0].lr.value() == 0.0625);
}

TEST_CASE("one optimizer for a model and a part of another trains each as its own would") {
  auto x = numbers<float>({5, 7}, 3);
  auto step = [](auto& one, auto& other, auto& v, auto& optimizer) {
    optimizer.zero_grad();
    (test::weights_loss(one.body, v) + deep_loss(other, v)).backward();
    optimizer.step();
  };
  check_in_modes(step, [&](auto run) {
    Small one{test::make_weights()};
    auto other = make_deep();
    optim::SGD optimizer{std::tuple{xla::part<>(one), xla::part<&Deep::left, &Big::head>(other)},
                         {.lr = 0.1, .momentum = 0.9}};
    for (int i = 0; i < 3; ++i) run(one, other, x, optimizer);
    test::check_equal(other.left.body.w, test::make_weights().w);
    CHECK(other.left.head.w.to_vector() == one.body.w.to_vector());
    CHECK(one.body.w.to_vector() != test::make_weights().w.to_vector());
    CHECK(xla::state_dict(optimizer)[1].name == "0.body.w.0");
    test::snapshot s;
    s.add(one), s.add(other);
    return s;
  });
}

TEST_CASE("one optimizer for two models of one type") {
  auto x = numbers<float>({5, 7}, 3);
  auto step = [](auto& actor, auto& critic, auto& v, auto& optimizer) {
    optimizer.zero_grad();
    (test::weights_loss(actor, v) + test::weights_loss(critic, v) * 2).backward();
    optimizer.step();
  };
  check_in_modes(step, [&](auto run) {
    auto actor = test::make_weights(), critic = test::make_weights();
    optim::AdamW optimizer{
        std::tie(actor, critic), {.lr = 0.1}, optim::group(is_vector, [](auto& o) { o.lr = 0; })};
    run(actor, critic, x, optimizer);
    test::check_equal(critic.b, test::make_weights().b);
    CHECK(critic.w.to_vector() != test::make_weights().w.to_vector());
    test::snapshot s;
    s.add(actor), s.add(critic);
    return s;
  });
  const xla::eager_mode_guard guard;
  auto actor = test::make_weights(), critic = test::make_weights();
  optim::AdamW optimizer{std::tie(actor, critic)};
  auto compiled = xla::compile(step);
  CHECK_THROWS_WITH(compiled(critic, actor, x, optimizer), test::contains("another model"));
  CHECK_THROWS_WITH(optim::SGD(std::tie(actor, critic, actor)), test::contains("twice"));
  auto deep = make_deep();
  CHECK_THROWS_WITH(optim::SGD(std::tie(deep.left.head, deep)), test::contains("twice"));
}

TEST_CASE("a target network is no optimizer's, and follows as an average") {
  auto x = numbers<float>({5, 7}, 3);
  auto step = [](auto& model, auto& target, auto& v, auto& average, auto& optimizer) {
    optimizer.zero_grad();
    (test::weights_loss(model, v) + sum(model.b * target.b.detach())).backward();
    optimizer.step();
    average.update();
    average.copy_to(target);
  };
  check_in_modes(step, [&](auto run) {
    auto model = test::make_weights();
    auto target = model;
    optim::ExponentialMovingAverage average{model, {.decay = 0.5}};
    optim::SGD optimizer{model, {.lr = 0.1}};
    run(model, target, x, average, optimizer);
    const auto start = test::make_weights().w.detach();
    test::check_equal(target.w, {5, 7}, ((start + model.w.detach()) * 0.5).to_vector(), 1e-6);
    test::snapshot s;
    s.add(model), s.add(target);
    return s;
  });
  const xla::eager_mode_guard guard;
  auto model = test::make_weights(), target = model;
  optim::ExponentialMovingAverage average{model};
  optim::SGD optimizer{target};
  auto compiled = xla::compile(step);
  CHECK_THROWS_WITH(compiled(model, target, x, average, optimizer),
                    test::contains("another model"));
}
