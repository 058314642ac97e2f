// SPDX-License-Identifier: Apache-2.0
// Layers with a normed weight against PyTorch's parametrizations, and models as vectors.
#include "xla/nn/weight_norm.hpp"

#include <set>

#include "data/modules.inc"
#include "support/gradient.hpp"
#include "support/modes.hpp"
#include "support/stored.hpp"
#include "xla/nn/conv.hpp"
#include "xla/nn/linear.hpp"
#include "xla/nn/parameters.hpp"
#include "xla/nn/spectral_norm.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/op/derived/elementwise.hpp"
#include "xla/optim/sgd.hpp"

using test::check_equal;
using test::check_modes;
using test::check_stored;
using test::numbers;
using test::parameter;
namespace nn = xla::nn;

namespace {

nn::Linear make_linear() {
  nn::Linear layer{7, 3};
  layer.weight.copy_(numbers<float>({3, 7}, 1));
  layer.bias.copy_(numbers<float>({3}, 2));
  return layer;
}

struct Net {
  nn::WeightNorm<nn::Linear> first{nn::Linear{7, 5}};
  nn::SpectralNorm<nn::Linear> second{nn::Linear{5, 3}};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const { return second(first(x)); }
  XLA_MODULE(first, second)
};

}  // namespace

TEST_CASE("weight_norm is PyTorch's, and so are its gradients") {
  const xla::eager_mode_guard eager;
  auto layer = nn::weight_norm(make_linear());
  const auto x = numbers<float>({4, 7}, 5);
  check_equal(layer(x), linear(x, layer.layer.weight, layer.layer.bias), 1e-6);
  layer.weight_g.copy_(numbers<float>({3, 1}, 3));
  const auto y = layer(x);
  check_stored(y, reference::weight_norm, 1e-5);
  test::weighted_sum(y).backward();
  check_stored(layer.weight_g.grad(), reference::weight_norm_grad_g, 2e-5);
  check_stored(layer.layer.weight.grad(), reference::weight_norm_grad_v, 2e-5);

  nn::Conv1d<4> kernel{2, 3};
  kernel.weight.copy_(numbers<float>({3, 2, 4}, 1));
  kernel.bias.copy_(numbers<float>({3}, 2));
  nn::WeightNorm<nn::Conv1d<4>> normed{kernel};
  check_stored(normed.weight_g, reference::weight_norm_conv_g);
  normed.weight_g.copy_(numbers<float>({3, 1, 1}, 3));
  check_stored(normed(numbers<float>({2, 2, 9}, 4)), reference::weight_norm_conv, 1e-5);
}

TEST_CASE("spectral_norm is PyTorch's: power iterations while training, gradients") {
  const xla::eager_mode_guard eager;
  auto layer = nn::spectral_norm(make_linear());
  const auto x = numbers<float>({4, 7}, 5);
  const auto largest = [&] {  // of the weight that the layer works with
    auto v = numbers<float>({7}, 6);
    for (int i = 0; i < 200; ++i) {
      v = mv(transpose(layer.weight()), mv(layer.weight(), v));
      v = v / norm(v);
    }
    return norm(mv(layer.weight(), v)).item();
  };
  CHECK(largest() == Approx(1).epsilon(0.01));
  layer.u.copy_(xla::normalize(numbers<float>({3}, 3), 2, 0));
  layer.v.copy_(xla::normalize(numbers<float>({7}, 4), 2, 0));
  const auto y = layer(x);
  check_stored(y, reference::spectral_norm, 1e-5);
  check_stored(layer.u, reference::spectral_norm_u);
  check_stored(layer.v, reference::spectral_norm_v);
  test::weighted_sum(y).backward();
  check_stored(layer.layer.weight.grad(), reference::spectral_norm_grad, 2e-5);
  layer.eval();
  check_stored(layer(x), reference::spectral_norm_eval, 1e-5);
  check_stored(layer.u, reference::spectral_norm_u);
}

TEST_CASE("a model with normed weights trains alike in every mode, and its state goes on") {
  const auto step = [](auto& model, auto& x, auto& optimizer) {
    optimizer.zero_grad();
    auto loss = mean(square(model(x)));
    loss.backward();
    optimizer.step();
    return loss;
  };
  const xla::eager_mode_guard guard;
  xla::manual_seed(3);
  const Net start;
  auto x = numbers<float>({4, 7}, 5);
  const auto train = [&](auto run) {
    Net model = start;
    xla::optim::SGD optimizer{model, {.lr = 0.1}};
    for (int i = 0; i < 3; ++i) run(model, x, optimizer);
    test::snapshot all;
    all.add(model);
    return all;
  };
  const auto eager = train(step);
  auto compiled = xla::compile(step);
  CHECK(train([&](auto&... a) { compiled(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(train(step).difference(eager) == "");
  xla::eager_mode(true);
  Net model = start, other;
  xla::load_state_dict(other, xla::state_dict(model));
  check_equal(other(x), model(x));
  CHECK(xla::state_dict(model).size() == 3 + 4);
}

TEST_CASE("normed weights have PyTorch's names in files, and its older ones are read") {
  const xla::eager_mode_guard eager;
  const auto names = [](const xla::StateDict& dict) {
    std::set<std::string> all;
    for (const auto& a : dict) all.insert(a.name);
    return all;
  };
  Net model;
  auto state = xla::state_dict(model);
  CHECK(names(state) ==
        std::set<std::string>{"first.bias", "first.parametrizations.weight.original0",
                              "first.parametrizations.weight.original1", "second.bias",
                              "second.parametrizations.weight.original",
                              "second.parametrizations.weight.0._u",
                              "second.parametrizations.weight.0._v"});
  for (auto& a : state) {
    const auto rename = [&](const std::string& from, const char* to) {
      if (a.name.ends_with(from)) a.name.replace(a.name.size() - from.size(), from.size(), to);
    };
    rename("parametrizations.weight.original0", "weight_g");
    rename("parametrizations.weight.original1", "weight_v");
    rename("parametrizations.weight.original", "weight_orig");
    rename("parametrizations.weight.0._u", "weight_u");
    rename("parametrizations.weight.0._v", "weight_v");
  }
  CHECK(names(state).contains("first.weight_v"));
  CHECK(names(state).contains("second.weight_orig"));
  Net other;
  xla::load_state_dict(other, state);
  other.eval();
  model.eval();
  const auto x = numbers<float>({4, 7}, 5);
  check_equal(other(x), model(x));
  state.pop_back();
  CHECK_THROWS_WITH(xla::load_state_dict(other, state),
                    test::contains("second.parametrizations.weight."));
}

TEST_CASE("parameters as one vector, and back") {
  const auto layer = make_linear();
  check_modes(
      [](auto& model, auto& target) {
        auto all = nn::parameters_to_vector(model);
        auto loss = sum(square(all)) * 0.5;
        loss.backward();
        nn::vector_to_parameters(all * 2, model);
        nn::lerp_parameters(target, model, 0.25);
        return std::tuple(loss, all + 0);
      },
      layer, nn::Linear{7, 3});

  const xla::eager_mode_guard eager;
  auto model = make_linear();
  const auto all = nn::parameters_to_vector(model);
  check_equal(all, xla::cat({flatten(model.weight), model.bias}, 0));
  sum(all * all).backward();
  check_equal(model.weight.grad(), model.weight * 2);
  model.zero_grad();
  CHECK_FALSE(model.weight.grad().defined());
  const auto before = model.weight.to_vector();
  nn::vector_to_parameters(all.detach() * 2, model);
  check_equal(nn::parameters_to_vector(model), all * 2);
  CHECK(model.weight.to_vector() != before);
  CHECK_THROWS_AS(nn::vector_to_parameters(numbers<float>({23}), model), xla::shape_error);
  check_equal(nn::parameters_to_vector(model), all * 2);
}

TEST_CASE("a target network follows its model") {
  const xla::eager_mode_guard eager;
  nn::Linear target = make_linear();
  nn::Linear model{7, 3};
  const auto from = target.weight.detach();
  nn::lerp_parameters(target, model, 0.005);
  check_equal(target.weight, from + (model.weight - from) * 0.005f);
  nn::lerp_parameters(target, model, 1);
  check_equal(target.bias, model.bias, 1e-6);
}
