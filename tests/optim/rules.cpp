// SPDX-License-Identifier: Apache-2.0
// The optimizers against PyTorch's results after ten steps, in every mode.
#include "support/rules.hpp"
#include "xla/optim/adagrad.hpp"
#include "xla/optim/adam.hpp"
#include "xla/optim/adamw.hpp"
#include "xla/optim/lion.hpp"
#include "xla/optim/radam.hpp"
#include "xla/optim/rmsprop.hpp"
#include "xla/optim/sgd.hpp"

using test::check_rule;
namespace optim = xla::optim;

TEST_CASE("SGD with momentum, dampening, weight decay and Nesterov's momentum") {
  check_rule<optim::SGD, optim::SGDOptions>(
      {{{.lr = 0.05, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.1}, &reference::sgd},
       {{.lr = 0.05, .dampening = 0.3}, &reference::sgd_plain},
       {{.lr = 0.05, .momentum = 0.8, .weight_decay = 0.1, .nesterov = true},
        &reference::sgd_nesterov}});
}

TEST_CASE("Adam with L2 weight decay, and AdamW") {
  check_rule<optim::Adam, optim::AdamOptions>(
      {{{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.99, .weight_decay = 0.1}, &reference::adam}});
  check_rule<optim::AdamW, optim::AdamWOptions>(
      {{{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.99, .weight_decay = 0.1}, &reference::adamw}});
}

TEST_CASE("RMSprop, with momentum, centered") {
  check_rule<optim::RMSprop, optim::RMSpropOptions>(
      {{{.lr = 0.02, .alpha = 0.9, .weight_decay = 0.1}, &reference::rmsprop},
       {{.lr = 0.02, .alpha = 0.9, .momentum = 0.5}, &reference::rmsprop_momentum},
       {{.lr = 0.02, .alpha = 0.9, .momentum = 0.5, .centered = true},
        &reference::rmsprop_centered}});
}

TEST_CASE("Adagrad and Lion") {
  check_rule<optim::Adagrad, optim::AdagradOptions>(
      {{{.lr = 0.1, .lr_decay = 0.05, .weight_decay = 0.1, .initial_accumulator_value = 0.2},
        &reference::adagrad}});
  check_rule<optim::Lion, optim::LionOptions>(
      {{{.lr = 0.03, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1}, &reference::lion}});
}

TEST_CASE("Adam and AdamW that divide by the largest second moment") {
  const optim::AdamOptions options{.lr = 0.5, .beta1 = 0.8, .beta2 = 0.5, .weight_decay = 0.1};
  check_rule<optim::Adam, optim::AdamOptions, test::weights_of_rules,
             optim::Amsgrad<optim::AdamOptions>>({{options, &reference::adam_amsgrad}},
                                                 optim::amsgrad);
  check_rule<optim::AdamW, optim::AdamWOptions, test::weights_of_rules,
             optim::Amsgrad<optim::AdamWOptions>>(
      {{{.lr = 0.5, .beta1 = 0.8, .beta2 = 0.5, .weight_decay = 0.1}, &reference::adamw_amsgrad}},
      optim::amsgrad);
  auto model = test::make_weights();
  optim::Adam named{model, options, optim::amsgrad};
  static_assert(std::is_same_v<decltype(named)::module_type, test::Weights>);
  CHECK(decltype(named.options)::states == 3);
  CHECK(named.options.lr.value() == 0.5);
}

TEST_CASE("RAdam, with both kinds of weight decay") {
  check_rule<optim::RAdam, optim::RAdamOptions>(
      {{{.lr = 0.05, .weight_decay = 0.1}, &reference::radam},
       {{.lr = 0.05,
         .beta1 = 0.8,
         .beta2 = 0.9,
         .weight_decay = 0.1,
         .decoupled_weight_decay = true},
        &reference::radam_decoupled}});
}

TEST_CASE("RAdam refuses bad options, in a group too") {
  const xla::eager_mode_guard eager;
  auto model = test::make_weights();
  using optim::RAdam;
  CHECK_THROWS_WITH((RAdam{model, {.lr = -1}}), "optim::RAdam: lr is -1, and has to be at least 0");
  CHECK_THROWS_WITH((RAdam{model, {.beta2 = 1}}),
                    "optim::RAdam: beta2 is 1, and has to be from 0 to below 1");
  CHECK_THROWS_WITH((RAdam{model, {.eps = std::nan("")}}),
                    "optim::RAdam: eps is nan, and has to be at least 0");
  CHECK_THROWS_AS((RAdam{model, {.weight_decay = -0.1}}), xla::error);
  CHECK_THROWS_AS(
      (RAdam{model,
             {},
             optim::group([](auto, int rank) { return rank < 2; }, [](auto& o) { o.beta1 = -1; })}),
      xla::error);
}
