// SPDX-License-Identifier: Apache-2.0
// Schedules against the rates that PyTorch's give.
#include "xla/optim/schedule.hpp"

#include "support/weights.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/optim/adagrad.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/sgd.hpp"
#include "xla/run/state/metrics.hpp"

namespace optim = xla::optim;

namespace {

struct Start {
  test::Weights model = test::make_weights();
  optim::SGD<test::Weights> optimizer{model, {.lr = 0.1, .momentum = 0.9}};
};

void check_rates(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    INFO("step " << i);
    CHECK(got[i] == Approx(want[i]).epsilon(1e-8));
  }
}

/// The rate at first and after each step of the schedules that make(optimizer) gives.
template <class Make>
void check_schedule(const std::vector<double>& want, Make make) {
  const xla::eager_mode_guard eager;
  Start s;
  auto schedules = make(s.optimizer);
  std::vector<double> got{s.optimizer.options.lr.value()};
  while (got.size() < want.size()) {
    std::apply([](auto&... each) { (each.step(), ...); }, schedules);
    got.push_back(s.optimizer.options.lr.value());
  }
  check_rates(got, want);
  const auto& first = std::get<0>(schedules);
  CHECK(first.last_epoch() == static_cast<int>(want.size()) - 1);
  CHECK(first.last_lr() == got.back());
}

}  // namespace

TEST_CASE("schedules give the rates of PyTorch's") {
  check_schedule(reference::lambda_lr, [](auto& o) {
    return std::tuple(optim::LambdaLR(o, [](int t) { return 1.0 / (1 + t); }));
  });
  check_schedule(reference::step_lr, [](auto& o) {
    return std::tuple(optim::StepLR(o, {.step_size = 3, .gamma = 0.5}));
  });
  check_schedule(reference::multi_step_lr, [](auto& o) {
    return std::tuple(optim::MultiStepLR(o, {.milestones = {2, 5, 5}, .gamma = 0.5}));
  });
  check_schedule(reference::exponential_lr,
                 [](auto& o) { return std::tuple(optim::ExponentialLR(o, {.gamma = 0.8})); });
  check_schedule(reference::cosine_lr, [](auto& o) {
    return std::tuple(optim::CosineAnnealingLR(o, {.T_max = 6, .eta_min = 0.01}));
  });
  check_schedule(reference::linear_lr, [](auto& o) {
    return std::tuple(
        optim::LinearLR(o, {.start_factor = 0.25, .end_factor = 0.9, .total_iters = 4}));
  });
}

TEST_CASE("schedules by one factor, by restarts and in cycles give the rates of PyTorch's") {
  check_schedule(reference::constant_lr, [](auto& o) {
    return std::tuple(optim::ConstantLR(o, {.factor = 0.25, .total_iters = 4}));
  });
  check_schedule(reference::polynomial_lr, [](auto& o) {
    return std::tuple(optim::PolynomialLR(o, {.total_iters = 6, .power = 1.7}));
  });
  check_schedule(reference::multiplicative_lr, [](auto& o) {
    return std::tuple(optim::MultiplicativeLR(o, [](int t) { return 1 - 0.1 / t; }));
  });
  check_schedule(reference::restarts_lr, [](auto& o) {
    return std::tuple(
        optim::CosineAnnealingWarmRestarts(o, {.T_0 = 3, .T_mult = 2, .eta_min = 0.01}));
  });
  check_schedule(reference::cyclic_lr, [](auto& o) {
    return std::tuple(optim::CyclicLR(o, {.base_lr = 0.05, .max_lr = 0.4, .step_size_up = 3}));
  });
  check_schedule(reference::cyclic_half_lr, [](auto& o) {
    return std::tuple(optim::CyclicLR(o, {.base_lr = 0.05,
                                          .max_lr = 0.4,
                                          .step_size_up = 3,
                                          .step_size_down = 5,
                                          .mode = "triangular2"}));
  });
  check_schedule(reference::cyclic_exp_lr, [](auto& o) {
    return std::tuple(optim::CyclicLR(
        o, {.base_lr = 0.05, .max_lr = 0.4, .step_size_up = 3, .mode = "exp_range", .gamma = 0.9}));
  });
}

TEST_CASE("CosineAnnealingWarmRestarts takes fractions of an epoch, and CyclicLR the momentum") {
  const xla::eager_mode_guard eager;
  Start s;
  optim::CosineAnnealingWarmRestarts restarts{s.optimizer,
                                              {.T_0 = 3, .T_mult = 2, .eta_min = 0.01}};
  std::vector<double> got{restarts.last_lr()};
  for (int i = 0; i < 30; ++i) {
    restarts.step(0.4 * i);
    got.push_back(restarts.last_lr());
  }
  check_rates(got, reference::restarts_fraction_lr);
  CHECK(restarts.last_epoch() == 11);
  CHECK_THROWS_AS(restarts.step(-1.), xla::error);

  optim::CyclicLR cycle{s.optimizer, {.base_lr = 0.05, .max_lr = 0.4, .step_size_up = 3}};
  std::vector<double> momentum{s.optimizer.options.momentum.value()};
  for (int i = 0; i < 14; ++i) {
    cycle.step();
    momentum.push_back(s.optimizer.options.momentum.value());
  }
  check_rates(momentum, reference::cyclic_momentum);
  optim::AdamW adam{s.model, {.lr = 0.1}};
  optim::CyclicLR with_betas{adam, {.base_lr = 0.05, .max_lr = 0.4}};
  CHECK(adam.options.beta1.value() == 0.9);
  CHECK(adam.options.lr.value() == 0.05);
}

TEST_CASE("SequentialLR and ChainedScheduler give the rates of PyTorch's") {
  check_schedule(reference::sequential_lr, [](auto& o) {
    return std::tuple(
        optim::SequentialLR{o,
                            std::tuple{optim::LinearLR{o, {.start_factor = 0.25, .total_iters = 4}},
                                       optim::LambdaLR{o, [](int t) { return 1.0 / (1 + t); }},
                                       optim::CosineAnnealingLR{o, {.T_max = 5, .eta_min = 0.01}}},
                            {.milestones = {4, 7}}});
  });
  check_schedule(reference::sequential_restarts_lr, [](auto& o) {
    return std::tuple(optim::SequentialLR{
        o,
        std::tuple{
            optim::ConstantLR{o, {.factor = 0.5, .total_iters = 10}},
            optim::CosineAnnealingWarmRestarts{o, {.T_0 = 3, .T_mult = 2}},
            optim::CyclicLR{
                o, {.base_lr = 0.05, .max_lr = 0.4, .step_size_up = 2, .cycle_momentum = false}}},
        {.milestones = {2, 9}}});
  });
  check_schedule(reference::chained_lr, [](auto& o) {
    return std::tuple(optim::ChainedScheduler{
        o, std::tuple{optim::ConstantLR{o, {.factor = 0.5, .total_iters = 3}},
                      optim::PolynomialLR{o, {.total_iters = 9}},
                      optim::ExponentialLR{o, {.gamma = 0.8}}}});
  });
}

TEST_CASE("schedules of one optimizer start from the rate at its first one, as PyTorch's") {
  const auto root = [](int t) { return 1 - 0.1 / (t + 1); };
  check_schedule(reference::warm_cosine_lr, [](auto& o) {
    optim::LinearLR warm{o, {.start_factor = 0.25, .total_iters = 4}};
    return std::tuple(warm, optim::CosineAnnealingLR{o, {.T_max = 3, .eta_min = 0.01}});
  });
  check_schedule(reference::warm_lambda_lr, [](auto& o) {
    optim::LinearLR warm{o, {.start_factor = 0.25, .total_iters = 4}};
    return std::tuple(warm, optim::LambdaLR{o, [](int t) { return 1.0 / (1 + t); }});
  });
  check_schedule(reference::warm_constant_lr, [](auto& o) {
    optim::LinearLR warm{o, {.start_factor = 0.25, .total_iters = 4}};
    return std::tuple(warm, optim::ConstantLR{o, {.factor = 0.5, .total_iters = 3}});
  });
  check_schedule(reference::sequential_multiplicative_lr, [&](auto& o) {
    std::tuple all{optim::ExponentialLR{o, {.gamma = 0.8}}, optim::MultiplicativeLR{o, root},
                   optim::PolynomialLR{o, {.total_iters = 4}}};
    return std::tuple(optim::SequentialLR{o, all, {.milestones = {3, 5}}});
  });
  check_schedule(reference::sequential_multiplicative_first_lr, [&](auto& o) {
    std::tuple all{optim::MultiplicativeLR{o, root}, optim::PolynomialLR{o, {.total_iters = 4}}};
    return std::tuple(optim::SequentialLR{o, all, {.milestones = {3}}});
  });
  check_schedule(reference::sequential_one_cycle_lr, [](auto& o) {
    std::tuple all{optim::LinearLR{o, {.start_factor = 0.5, .total_iters = 2}},
                   optim::OneCycleLR{o, {.max_lr = 0.5, .total_steps = 8}}};
    return std::tuple(optim::SequentialLR{o, all, {.milestones = {3}}});
  });
  check_schedule(reference::one_cycle_first_lr, [](auto& o) {
    std::tuple all{optim::OneCycleLR{o, {.max_lr = 0.5, .total_steps = 4}},
                   optim::StepLR{o, {.step_size = 2, .gamma = 0.5}}};
    return std::tuple(optim::SequentialLR{o, all, {.milestones = {3}}});
  });
  check_schedule(reference::chained_cosine_lr, [](auto& o) {
    std::tuple all{optim::LinearLR{o, {.start_factor = 0.5, .total_iters = 2}},
                   optim::CosineAnnealingLR{o, {.T_max = 3, .eta_min = 0.01}}};
    return std::tuple(optim::ChainedScheduler{o, all});
  });
}

TEST_CASE("a SequentialLR goes on in another by its numbers") {
  const xla::eager_mode_guard eager;
  const auto make = [](auto& o) {
    return optim::SequentialLR{o,
                               std::tuple{optim::LinearLR{o, {.start_factor = 0.25}},
                                          optim::CosineAnnealingWarmRestarts{o, {.T_0 = 3}}},
                               {.milestones = {5}}};
  };
  Start a, b;
  auto first = make(a.optimizer), second = make(b.optimizer);
  for (int i = 0; i < 7; ++i) first.step();
  xla::load_state_dict(b.optimizer, xla::state_dict(a.optimizer));
  const auto numbers = xla::state_dict(first);
  xla::load_state_dict(second, numbers);
  CHECK(numbers.size() == 2 + 2 + 4);
  CHECK(numbers[2].name == "schedulers.0.last_epoch");
  for (int i = 0; i < 5; ++i) {
    first.step();
    second.step();
    CHECK(second.last_lr() == first.last_lr());
    CHECK(second.last_epoch() == first.last_epoch());
  }
}

TEST_CASE("a warm-up and a schedule after it multiply") {
  check_schedule(reference::warm_step_lr, [](auto& o) {
    return std::tuple(optim::LinearLR(o, {.start_factor = 0.25, .total_iters = 4}),
                      optim::StepLR(o, {.step_size = 3, .gamma = 0.5}));
  });
}

TEST_CASE("OneCycleLR moves the rate and the momentum as PyTorch's does, and then ends") {
  check_schedule(reference::one_cycle_lr, [](auto& o) {
    return std::tuple(optim::OneCycleLR(o, {.max_lr = 0.5, .total_steps = 12}));
  });
  check_schedule(reference::one_cycle_linear_lr, [](auto& o) {
    return std::tuple(optim::OneCycleLR(
        o, {.max_lr = 0.5, .total_steps = 12, .pct_start = 0.5, .cosine = false}));
  });
  const xla::eager_mode_guard eager;
  Start s;
  optim::OneCycleLR cycle{s.optimizer, {.max_lr = 0.5, .total_steps = 12}};
  std::vector<double> momentum{s.optimizer.options.momentum.value()};
  for (int i = 0; i < 12; ++i) {
    cycle.step();
    momentum.push_back(s.optimizer.options.momentum.value());
  }
  check_rates(momentum, reference::one_cycle_momentum);
  CHECK_THROWS_WITH(cycle.step(), test::contains("OneCycleLR: step()"));

  optim::AdamW adam{s.model, {.lr = 0.1}};
  optim::OneCycleLR with_betas{adam, {.max_lr = 0.5, .total_steps = 12}};
  CHECK(adam.options.beta1.value() == 0.95);
  optim::OneCycleLR rate_alone{
      adam, {.max_lr = 0.5, .total_steps = 12, .cycle_momentum = false, .max_momentum = 0.5}};
  CHECK(adam.options.beta1.value() == 0.95);
}

TEST_CASE("ReduceLROnPlateau waits as PyTorch's does") {
  const xla::eager_mode_guard eager;
  auto rates = [](optim::ReduceLROnPlateauOptions options, double sign) {
    Start s;
    optim::ReduceLROnPlateau schedule{s.optimizer, options};
    std::vector<double> got{0.1};
    for (double m : {5., 4., 4.0001, 4., 4., 3.9999, 3., 3., 3., 3., 3., 3., 3., 3., 3., 3.}) {
      schedule.step(sign * m);
      got.push_back(schedule.last_lr());
    }
    return got;
  };
  check_rates(rates({.factor = 0.5, .patience = 1, .cooldown = 1}, 1), reference::plateau_lr);
  check_rates(
      rates({.maximize = true, .patience = 2, .threshold = 0.5, .relative = false, .min_lr = 0.002},
            -1),
      reference::plateau_max_lr);
}

TEST_CASE("schedules refuse what has no meaning") {
  const xla::eager_mode_guard eager;
  Start s;
  CHECK_THROWS_WITH(optim::StepLR(s.optimizer, {.step_size = 0}), test::contains("StepLR"));
  CHECK_THROWS_AS(optim::StepLR(s.optimizer, {.gamma = 0}), xla::error);
  CHECK_THROWS_AS(optim::MultiStepLR(s.optimizer, {.milestones = {1}, .gamma = -1}), xla::error);
  CHECK_THROWS_AS(optim::ExponentialLR(s.optimizer, {.gamma = NAN}), xla::error);
  CHECK_THROWS_AS(optim::CosineAnnealingLR(s.optimizer, {.T_max = 0}), xla::error);
  CHECK_THROWS_AS(optim::CosineAnnealingLR(s.optimizer, {.T_max = 1, .eta_min = -1}), xla::error);
  CHECK_THROWS_AS(optim::LinearLR(s.optimizer, {.start_factor = 0}), xla::error);
  CHECK_THROWS_AS(optim::LinearLR(s.optimizer, {.total_iters = 0}), xla::error);
  CHECK_THROWS_AS(optim::ConstantLR(s.optimizer, {.factor = 0}), xla::error);
  CHECK_THROWS_AS(optim::ConstantLR(s.optimizer, {.factor = 1.5}), xla::error);
  CHECK_THROWS_AS(optim::PolynomialLR(s.optimizer, {.total_iters = 0}), xla::error);
  CHECK_THROWS_AS(optim::CosineAnnealingWarmRestarts(s.optimizer, {.T_0 = 0}), xla::error);
  CHECK_THROWS_AS(optim::CosineAnnealingWarmRestarts(s.optimizer, {.T_mult = 0}), xla::error);
  CHECK_THROWS_AS(optim::CyclicLR(s.optimizer, {.step_size_up = 0}), xla::error);
  CHECK_THROWS_WITH(optim::CyclicLR(s.optimizer, {.mode = "sine"}), test::contains("triangular2"));
  optim::Adagrad adagrad{s.model, {.lr = 0.1}};
  CHECK_THROWS_WITH(optim::OneCycleLR(adagrad, {.max_lr = 1, .total_steps = 2}),
                    test::contains("OneCycleLR: the optimizer has neither momentum nor beta1"));
  CHECK_THROWS_WITH(optim::CyclicLR(adagrad, {}), test::contains("cycle_momentum = false"));
  Start other;
  const auto two = [&](auto& second, std::vector<int> milestones) {
    const auto ignored =
        optim::SequentialLR{s.optimizer,
                            std::tuple{optim::StepLR{s.optimizer, {}}, optim::StepLR{second, {}}},
                            {.milestones = std::move(milestones)}};
  };
  CHECK_THROWS_WITH(two(other.optimizer, {3}), test::contains("all of one optimizer"));
  CHECK_THROWS_WITH(two(s.optimizer, {}), test::contains("one milestone less"));
  CHECK_THROWS_WITH(two(s.optimizer, {3, 5}), test::contains("one milestone less"));
  CHECK_NOTHROW(two(s.optimizer, {3}));
  CHECK_THROWS_AS(optim::OneCycleLR(s.optimizer, {.max_lr = 1}), xla::error);
  CHECK_THROWS_AS(optim::OneCycleLR(s.optimizer, {.total_steps = 1}), xla::error);
  CHECK_THROWS_AS(optim::ReduceLROnPlateau(s.optimizer, {.factor = 1}), xla::error);
  CHECK_THROWS_AS(optim::ReduceLROnPlateau(s.optimizer, {.factor = 0}), xla::error);
  CHECK_THROWS_AS(optim::ReduceLROnPlateau(s.optimizer, {.patience = -1}), xla::error);
  CHECK(s.optimizer.options.lr.value() == 0.1);
}

TEST_CASE("a compiled step follows the schedule and is compiled once") {
  const xla::eager_mode_guard eager;
  const auto x = test::numbers<float>({5, 7}, 3);
  auto step_fn = [](auto& model, const auto& v, auto& optimizer) {
    optimizer.zero_grad();
    test::weights_loss(model, v).backward();
    optimizer.step();
  };
  auto train = [&](auto run) {
    Start s;
    optim::CosineAnnealingLR schedule{s.optimizer, {.T_max = 5}};
    for (int i = 0; i < 8; ++i) {
      run(s.model, x, s.optimizer);
      schedule.step();
    }
    test::snapshot state;
    state.add(s.model);
    return state;
  };
  const auto graphs = xla::counter_value("UncachedCompile").value_or(0);
  auto compiled = xla::compile(step_fn);
  const auto got = train([&](auto&... a) { compiled(a...); });
  CHECK(xla::counter_value("UncachedCompile").value_or(0) == graphs + 1);
  CHECK(got.difference(train(step_fn)) == "");
}
