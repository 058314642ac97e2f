// SPDX-License-Identifier: Apache-2.0
// What constant evaluation makes of two steps, counted: build times are noisy, these are not.
#include <xla/xla.hpp>

#include "catch.hpp"

namespace nn = xla::nn;
using xla::detail::static_program;

namespace {

struct Mlp {
  nn::Linear fc1{784, 128}, fc2{128, 10};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc2)
};

struct mlp_step {
  constexpr auto operator()(auto& model, auto& data, auto& target, auto& loss_fn,
                            auto& optimizer) const {
    optimizer.zero_grad();
    auto loss = loss_fn(model(data), target);
    loss.backward();
    optimizer.step();
    return loss;
  }
};

}  // namespace

TEST_CASE("the README's step has few nodes, steps and kernels") {
  using program =
      static_program<mlp_step, Mlp&, xla::Tensor<float, 2>&, xla::Tensor<std::int64_t, 1>&,
                     nn::CrossEntropyLoss&, xla::optim::SGD<Mlp>&>;
  INFO("a pass merges or removes less, or an op is made of more: see graph(Stage::lowered)");
  // Three values, two steps and a kernel are the data's gradient, which most calls leave out.
  CHECK(program::size.values <= 65);
  CHECK(program::size.steps <= 24);
  CHECK(program::size.keys <= 11);
}
