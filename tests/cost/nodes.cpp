// SPDX-License-Identifier: Apache-2.0
// What constant evaluation makes of two steps, counted: build times are noisy, these are not.
#include <xla/xla.hpp>

#include "catch.hpp"
#include "support/steps.hpp"

namespace nn = xla::nn;
using xla::detail::static_program;

namespace {

struct Mlp {
  nn::Linear fc1{784, 128}, fc2{128, 10};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc2)
};

}  // namespace

TEST_CASE("the README's step has few nodes, steps and kernels") {
  using program =
      static_program<decltype(test::step_fn), Mlp&, xla::Tensor<float, 2>&,
                     xla::Tensor<std::int64_t, 1>&, nn::CrossEntropyLoss&, xla::optim::SGD<Mlp>&>;
  INFO("a pass merges or removes less, or an op is made of more: see graph(Stage::lowered)");
  // Three values, two steps and a kernel are the data's gradient, which most calls leave out.
  CHECK(program::size.values <= 65);
  CHECK(program::size.steps <= 24);
  CHECK(program::size.keys <= 11);
}
