// SPDX-License-Identifier: Apache-2.0
// The optimizers that programs include by name against PyTorch's results after ten steps.
#include <limits>

#include "support/rules.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/optim/adadelta.hpp"
#include "xla/optim/adafactor.hpp"
#include "xla/optim/adamax.hpp"
#include "xla/optim/asgd.hpp"
#include "xla/optim/muon.hpp"
#include "xla/optim/nadam.hpp"
#include "xla/optim/rprop.hpp"
#include "xla/optim/zero_redundancy.hpp"

using test::check_rule;
using test::numbers;
namespace optim = xla::optim;

namespace {

/// Two parameters of any sizes: the first learns x, the second goes to 0.
template <int A, int B, class Sizes>
struct pair_of_rules {
  struct Pair {
    xla::Parameter<float, A> w{Sizes::first};
    xla::Parameter<float, B> v{Sizes::second};
    XLA_MODULE(w, v)
  };
  static Pair make() {
    Pair m;
    m.w.copy_(numbers<float>(Sizes::first, 1));
    m.v.copy_(numbers<float>(Sizes::second, 2));
    return m;
  }
  static xla::Tensor<float, A> data() { return numbers<float>(Sizes::first, 3); }
  static constexpr auto loss = [](auto& model, auto& x) {
    const auto d = model.w - x;
    return sum(d * d) * 0.5 + sum(model.v * model.v);
  };
  static void check(const Pair& m, const std::vector<double>& want) {
    const auto split = want.begin() + m.w.numel();
    test::check_stored(m.w, {want.begin(), split});
    test::check_stored(m.v, {split, want.end()});
  }
};
struct wide_and_tall {
  static constexpr xla::Size first[] = {5, 7}, second[] = {7, 4};
};
struct deep_and_flat {
  static constexpr xla::Size first[] = {2, 5, 3}, second[] = {4};
};
using matrices = pair_of_rules<2, 2, wide_and_tall>;
using deep = pair_of_rules<3, 1, deep_and_flat>;

template <class Optimizer>
void train(Optimizer& optimizer, const xla::Tensor<float, 2>& x, int steps) {
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    test::weights_loss(optimizer.model(), x).backward();
    optimizer.step();
  }
}

/// Six steps at once, and three, a state that goes into another optimizer, and three more.
template <template <class> class Optimizer, class Options>
void check_state(const Options& options) {
  const auto x = numbers<float>({5, 7}, 3);
  auto whole = test::make_weights(), first = test::make_weights(), second = test::make_weights();
  Optimizer<test::Weights> all{whole, options}, before{first, options}, after{second, options};
  train(all, x, 6);
  train(before, x, 3);
  xla::load_state_dict(second, xla::state_dict(first));
  xla::load_state_dict(after, xla::state_dict(before));
  train(after, x, 3);
  test::check_equal(second.w, whole.w);
  test::check_equal(second.b, whole.b);
}

}  // namespace

TEST_CASE("NAdam, with both kinds of weight decay") {
  check_rule<optim::NAdam, optim::NAdamOptions>(
      {{{.lr = 0.05, .weight_decay = 0.1}, &reference::nadam},
       {{.lr = 0.05,
         .beta1 = 0.8,
         .beta2 = 0.99,
         .weight_decay = 0.1,
         .momentum_decay = 0.5,
         .decoupled_weight_decay = true},
        &reference::nadam_decoupled}});
}

TEST_CASE("Adamax and Adadelta") {
  check_rule<optim::Adamax, optim::AdamaxOptions>(
      {{{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.1}, &reference::adamax}});
  check_rule<optim::Adadelta, optim::AdadeltaOptions>(
      {{{.weight_decay = 0.1}, &reference::adadelta},
       {{.lr = 0.5, .rho = 0.6, .eps = 1e-2}, &reference::adadelta_rho}});
}

TEST_CASE("ASGD and Rprop") {
  check_rule<optim::ASGD, optim::ASGDOptions>(
      {{{.lr = 0.05, .lambd = 0.1, .t0 = 4, .weight_decay = 0.1}, &reference::asgd}});
  check_rule<optim::Rprop, optim::RpropOptions>(
      {{{.lr = 0.5}, &reference::rprop},
       {{.lr = 0.1, .etaminus = 0.3, .etaplus = 2.5, .step_size_min = 0.01, .step_size_max = 0.8},
        &reference::rprop_bounded}});
}

TEST_CASE("Adafactor of vectors, matrices and three axes") {
  check_rule<optim::Adafactor, optim::AdafactorOptions>(
      {{{.lr = 0.5, .weight_decay = 0.1}, &reference::adafactor},
       {{.lr = 0.3, .beta2_decay = -0.5, .eps1 = 2.5, .eps2 = 0.9, .d = 1.5},
        &reference::adafactor_bounded}});
  check_rule<optim::Adafactor, optim::AdafactorOptions, deep>(
      {{{.lr = 0.2}, &reference::adafactor_deep}});
}

TEST_CASE("Adafactor keeps a number a row and one a column of a matrix") {
  auto model = deep::make();
  optim::Adafactor optimizer{model, {}};
  std::vector<std::vector<std::int64_t>> sizes;
  optimizer.visit_state([&](auto& state, const auto&) { sizes.push_back(state.sizes()); });
  CHECK(sizes == std::vector<std::vector<std::int64_t>>{{}, {2, 5, 1}, {2, 1, 3}, {4}, {1}});
}

TEST_CASE("Muon of wide and tall matrices, by both rules of the rate") {
  check_rule<optim::Muon, optim::MuonOptions, matrices>({{{.lr = 0.05}, &reference::muon},
                                                         {{.lr = 0.02,
                                                           .weight_decay = 0.5,
                                                           .momentum = 0.8,
                                                           .nesterov = false,
                                                           .match_rms_adamw = true},
                                                          &reference::muon_plain}});
}

TEST_CASE("their state goes on in another optimizer") {
  const xla::eager_mode_guard eager;
  check_state<optim::NAdam>(optim::NAdamOptions{.lr = 0.05, .momentum_decay = 0.5});
  check_state<optim::Adamax>(optim::AdamaxOptions{.lr = 0.05});
  check_state<optim::Adadelta>(optim::AdadeltaOptions{});
  check_state<optim::ASGD>(optim::ASGDOptions{.lr = 0.05, .lambd = 0.1, .t0 = 4});
  check_state<optim::Rprop>(optim::RpropOptions{});
  check_state<optim::Adafactor>(optim::AdafactorOptions{.lr = 0.5});
  auto model = test::make_weights();
  optim::NAdam optimizer{model, {}};
  train(optimizer, numbers<float>({5, 7}, 3), 1);
  const auto state = xla::state_dict(optimizer);
  REQUIRE(state.size() > 2);
  CHECK(state[0].name == "step");
  CHECK(state[1].name == "mu_product");
}

TEST_CASE("ZeroRedundancy takes the numbers that parameters share, and gives them back") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({5, 7}, 3);
  const optim::NAdamOptions options{.lr = 0.05, .momentum_decay = 0.5};
  auto model = test::make_weights(), same = test::make_weights();
  optim::NAdam plain{model, options}, first{same, options};
  train(plain, x, 6);
  train(first, x, 3);
  optim::ZeroRedundancy parts{std::move(first)};
  train(parts, x, 3);
  auto whole = parts.consolidate();
  const auto state_of = [](auto& optimizer) {
    test::snapshot all;
    optimizer.visit_state([&](auto& state, const auto&) { all.add(state); });
    return all;
  };
  CHECK(state_of(whole).difference(state_of(plain)) == "");
  test::check_equal(same.w, model.w);
}

TEST_CASE("groups share numbers of their own") {
  const xla::eager_mode_guard eager;
  auto model = test::make_weights(), plain = test::make_weights();
  const optim::NAdamOptions options{.lr = 0.05, .momentum_decay = 0.5};
  optim::NAdam grouped{model, options,
                       optim::group([](std::string_view, int rank) { return rank < 2; },
                                    [](auto& o) { o.beta1 = 0.5; })};
  optim::NAdam one{plain, options};
  const auto x = numbers<float>({5, 7}, 3);
  train(grouped, x, 4);
  train(one, x, 4);
  test::check_equal(model.w, plain.w);
  std::vector<std::string> names;
  std::vector<float> products;
  grouped.visit_state([&](auto& state, const xla::tree_path& path) {
    names.push_back(path.str());
    if (state.dim() == 0) products.push_back(state.to_vector()[0]);
  });
  CHECK(std::vector(names.begin(), names.begin() + 3) ==
        std::vector<std::string>{"step", "mu_product", "mu_product.0"});
  CHECK(products[1] == Approx(products[2] * std::pow(0.9 / 0.5, 4)).epsilon(1e-5));
  optim::NAdam other{plain, {.lr = 0.05, .beta1 = 0.5, .momentum_decay = 0.5}};
  plain = test::make_weights();
  train(other, x, 4);
  test::check_equal(model.b, plain.b);
}

TEST_CASE("bad options are refused") {
  auto m = test::make_weights();
  CHECK_THROWS_WITH((optim::NAdam{m, {.momentum_decay = -1}}),
                    "optim::NAdam: momentum_decay is -1, and has to be at least 0");
  CHECK_THROWS_AS((optim::NAdam{m, {.beta1 = 1}}), xla::error);
  CHECK_THROWS_AS((optim::Adamax{m, {.beta2 = 1.5}}), xla::error);
  CHECK_THROWS_AS((optim::Adadelta{m, {.rho = 1.1}}), xla::error);
  CHECK_NOTHROW(optim::Adadelta{m, {.rho = 1}});
  CHECK_THROWS_AS((optim::ASGD{m, {.weight_decay = -1}}), xla::error);
  CHECK_THROWS_AS((optim::Rprop{m, {.etaminus = 0}}), xla::error);
  CHECK_THROWS_AS((optim::Rprop{m, {.etaplus = 1}}), xla::error);
  CHECK_THROWS_AS((optim::Adafactor{m, {.beta2_decay = 0.5}}), xla::error);
  CHECK_THROWS_AS((optim::Adafactor{m, {.d = 0.5}}), xla::error);
  auto pair = matrices::make();
  CHECK_THROWS_AS((optim::Muon{pair, {.momentum = -1}}), xla::error);
  CHECK_THROWS_WITH((optim::Muon{pair, {.ns_steps = 100}}),
                    "optim::Muon: ns_steps is 100, and has to be from 0 to 99");
}
