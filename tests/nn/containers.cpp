// SPDX-License-Identifier: Apache-2.0
#include "support/mlp.hpp"
#include "support/modes.hpp"
#include "xla/nn/activation.hpp"
#include "xla/nn/containers.hpp"
#include "xla/nn/shape.hpp"
#include "xla/optim/sgd.hpp"

using test::check_equal;
using test::numbers;
namespace nn = xla::nn;

namespace {

// Square layers between two others, each with a way around it.
struct Tower {
  using Block = nn::Residual<nn::Sequential<nn::Linear, nn::Tanh, nn::LinearNoBias>>;
  static constexpr Block make_block() {
    return Block{{nn::Linear{9, 11}, nn::Tanh{}, nn::LinearNoBias{11, 9}}};
  }
  nn::Linear in{17, 9};
  nn::ModuleArray<Block, 3> blocks{[] { return make_block(); }};
  nn::Linear out{9, 5};
  constexpr auto operator()(const xla::Tensor<float, 2>& x) const { return out(blocks(in(x))); }
  XLA_MODULE(in, blocks, out)
};

}  // namespace

TEST_CASE("Identity and Flatten") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<float>({2, 3, 4});
  check_equal(nn::Identity{}(x), x);
  check_equal(nn::Flatten{}(x), {2, 12}, x.to_vector());
  check_equal(nn::Flatten<2>{}(x), {2, 3, 4}, x.to_vector());
  check_equal(nn::Flatten<0>{}(x), {24}, x.to_vector());
  check_equal(nn::Flatten{}(numbers<float>({0, 3, 4})), {0, 12}, {});
  nn::Sequential model{nn::Flatten{}, nn::Linear{12, 2}, nn::Identity{}};
  auto predict = xla::compile(model);
  check_equal(predict(x), model(x));
}

TEST_CASE("LinearNoBias is x weightᵀ") {
  const xla::eager_mode_guard eager;
  nn::LinearNoBias layer(100, 50);
  const auto x = numbers<float>({3, 100});
  check_equal(layer(x), matmul(x, transpose(layer.weight)));
  CHECK(max(abs(layer.weight)).item() <= 0.1f);
  CHECK(max(abs(layer.weight)).item() > 0.09f);
  CHECK(xla::parameter_count(layer) == 5000);
}

TEST_CASE("a ModuleArray applies its modules in order, each with weights of its own") {
  const xla::eager_mode_guard eager;
  nn::ModuleArray<nn::Linear, 3> layers{[] { return nn::Linear{4, 4}; }};
  const auto x = numbers<float>({2, 4});
  check_equal(layers(x), layers[2](layers[1](layers[0](x))));
  CHECK(layers[0].weight.to_vector() != layers[1].weight.to_vector());
  CHECK(layers.size() == 3);
  int n = 0;
  for (auto& layer : layers) n += static_cast<int>(xla::parameter_count(layer));
  CHECK(n == 3 * 20);
  std::vector<std::string> names;
  xla::named_parameters(layers, [&](const std::string& name, auto&) { names.push_back(name); });
  CHECK(names[2] == "1.weight");
}

TEST_CASE("nested containers train the same in every mode") {
  const xla::eager_mode_guard guard;
  auto train = [](auto run) {
    xla::manual_seed(5);
    Tower model;
    nn::CrossEntropyLoss loss_fn;
    xla::optim::SGD optimizer{model, {.lr = 0.05, .momentum = 0.9}};
    for (std::uint64_t i = 0; i < 5; ++i) {
      test::batch b(8, i);
      run(model, b.data, b.target, loss_fn, optimizer);
    }
    return test::state_of(model, optimizer);
  };
  const auto eager = train(test::step_fn);
  auto compiled = xla::compile(test::step_fn);
  CHECK(train([&](auto&... a) { compiled(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  CHECK(train(test::step_fn).difference(eager) == "");
}
