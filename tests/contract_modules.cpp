// SPDX-License-Identifier: Apache-2.0
// A model's structure is its type: nested modules, arrays, tuples, templates.
#include <xla/xla.hpp>

#include "support/mlp.hpp"

using test::batch;
namespace nn = xla::nn;

namespace {

struct Block {
  nn::Linear a{9, 9}, b{9, 9};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return x + b(xla::relu(a(x))); }
  XLA_MODULE(a, b)
};

template <int Depth>
struct Residual {
  nn::Linear in{17, 9};
  std::array<Block, Depth> blocks;
  nn::Linear out{9, 5};
  int turns = 2;
  constexpr auto operator()(xla::Tensor<float, 2> x) const {
    auto h = in(x);
    for (int i = 0; i < turns; ++i)
      for (auto& block : blocks) h = block(h);
    return out(h);
  }
  XLA_MODULE(in, blocks, out, turns)
};

template <class Model>
test::snapshot train(Model& model, auto run) {
  nn::CrossEntropyLoss loss_fn;
  xla::optim::AdamW optimizer{model, {.lr = 1e-2}};
  for (std::uint64_t i = 0; i < 5; ++i) {
    batch b(8, i);
    run(model, b.data, b.target, loss_fn, optimizer);
  }
  return test::state_of(model, optimizer);
}

template <class Make>
void check_trains_alike(Make make) {
  const xla::eager_mode_guard guard;
  auto fresh = [&] {
    xla::manual_seed(11);
    return make();
  };
  auto first = fresh();
  const auto eager = train(first, test::step_fn);
  auto step = xla::compile(test::step_fn);
  auto second = fresh();
  CHECK(train(second, [&](auto&... a) { step(a...); }).difference(eager) == "");
  xla::eager_mode(false);
  auto third = fresh();
  CHECK(train(third, test::step_fn).difference(eager) == "");
}

std::vector<std::string> names_of(auto& model) {
  std::vector<std::string> names;
  xla::named_parameters(model, [&](const std::string& name, auto&) { names.push_back(name); });
  return names;
}

}  // namespace

TEST_CASE("a Sequential of sized layers trains the same in every mode") {
  check_trains_alike([] {
    return nn::Sequential{nn::Linear{17, 33}, nn::ReLU{}, nn::Linear{33, 5}};
  });
}

TEST_CASE("arrays of modules in a class template train the same in every mode") {
  check_trains_alike([] { return Residual<2>(); });
}

TEST_CASE("parameters have PyTorch's names, and are counted") {
  const xla::eager_mode_guard eager;
  Residual<2> model;
  CHECK(names_of(model) == std::vector<std::string>{"in.weight", "in.bias", "blocks.0.a.weight",
                                                    "blocks.0.a.bias", "blocks.0.b.weight",
                                                    "blocks.0.b.bias", "blocks.1.a.weight",
                                                    "blocks.1.a.bias", "blocks.1.b.weight",
                                                    "blocks.1.b.bias", "out.weight", "out.bias"});
  CHECK(xla::parameter_count(model) == 17 * 9 + 9 + 4 * (81 + 9) + 45 + 5);
  nn::Sequential layers{nn::Linear{2, 3}, nn::ReLU{}, nn::Linear{3, 1}};
  CHECK(names_of(layers) == std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"});
}

TEST_CASE("a plain number that differs from the type's is refused with its path") {
  const xla::eager_mode_guard eager;
  Residual<1> model;
  auto predict = xla::compile(model);
  const batch b(4);
  test::check_equal(predict(b.data), model(b.data));
  model.turns = 3;
  CHECK_THROWS_AS(predict(b.data), xla::error);
  CHECK_THROWS_WITH(predict(b.data), test::contains("turns"));
  model.turns = 2;
  test::check_equal(predict(b.data), model(b.data));
}

TEST_CASE("a Sequential takes other sizes as another signature") {
  const xla::eager_mode_guard eager;
  nn::Sequential narrow{nn::Linear{17, 3}, nn::Tanh{}, nn::Linear{3, 2}};
  nn::Sequential wide{nn::Linear{17, 64}, nn::Tanh{}, nn::Linear{64, 2}};
  auto f = xla::compile([](const auto& model, const auto& x) { return model(x); });
  const batch b(4);
  test::check_equal(f(narrow, b.data), narrow(b.data));
  test::check_equal(f(wide, b.data), wide(b.data));
  test::check_equal(f(narrow, b.data), narrow(b.data));
}

TEST_CASE("random numbers in a step are the same in every mode") {
  auto noise = [](auto& x) {
    const auto keep = rand_like(x) < 0.5;
    const auto normal = randn_like(sum(x, {0}));
    const auto third = rand_like(x);
    return std::tuple(where(keep, x * 2, 0), normal + x, third);
  };
  test::check_modes(noise, test::numbers<float>({7, 13}));
  test::check_modes(noise, test::numbers<double>({33, 17}));
}
