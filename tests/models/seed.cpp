// SPDX-License-Identifier: Apache-2.0
// The two programs of PyTorch/XLA's page on torch.compile, line by line, with ResNet-18.
#include "support/models.hpp"
#include "xla/data/loader.hpp"
#include "xla/models/resnet.hpp"
#include "xla/op/concat.hpp"

namespace models = xla::models;
namespace nn = xla::nn;
namespace optim = xla::optim;

namespace {

using ResNet18 = models::ResNet18<10>;

/// Three batches of four images.
auto make_loader() {
  const test::image_batch a({4, 3, 48, 48}), b({4, 3, 48, 48}, 1003), c({4, 3, 48, 48}, 1006);
  return xla::data::DataLoader{xla::data::TensorDataset{xla::cat({a.images, b.images, c.images}),
                                                        xla::cat({a.labels, b.labels, c.labels})},
                               {.batch_size = 4}};
}

std::vector<xla::Tensor<float, 2>> eval_model(auto&& loader) {
  std::vector<xla::Tensor<float, 2>> outputs;
  const auto device = xla::device();
  ResNet18 xla_resnet18;
  test::fill(xla_resnet18.to(device));
  xla_resnet18.eval();
  auto dynamo_resnet18 = xla::compile(xla_resnet18);
  for (const auto& [data, _] : loader) {
    const auto output = xla::no_grad([&] { return dynamo_resnet18(data); });
    outputs.push_back(output);
  }
  return outputs;
}

constexpr auto train_model = [](auto& model, auto& data, auto& target, auto& optimizer) {
  nn::CrossEntropyLoss loss_fn;
  auto pred = model(data);
  auto loss = loss_fn(pred, target);
  loss.backward();
  optimizer.step();
  return pred;
};

struct Trained {
  std::vector<xla::Tensor<float, 2>> predictions;
  test::snapshot all;  ///< these, and what the training left
};

Trained train_model_main(auto&& loader, auto& dynamo_train_model) {
  Trained result;
  const auto device = xla::device();
  ResNet18 xla_resnet18;
  test::fill(xla_resnet18.to(device));
  xla_resnet18.train();
  for (const auto& [data, target] : loader) {
    optim::SGD xla_optimizer{xla_resnet18, {.lr = 0.1, .weight_decay = 1e-2}};
    const auto output = dynamo_train_model(xla_resnet18, data, target, xla_optimizer);
    result.predictions.push_back(output);
    result.all.add(output);
  }
  result.all.append(test::state_of(xla_resnet18));
  return result;
}

}  // namespace

TEST_CASE("eval_model: a compiled model gives torchvision's logits, from one graph") {
  const xla::eager_mode_guard eager;
  const auto graphs = test::count_of("UncachedCompile");
  const auto outputs = eval_model(make_loader());
  CHECK(test::count_of("UncachedCompile") == graphs + 1);
  test::check_pytorch("models/resnet18/logits", outputs.at(0), 1e-4);
  ResNet18 model;
  test::fill(model);
  model.eval();
  std::size_t i = 0;
  const auto check = [&] {
    for (const auto& [data, _] : make_loader())
      test::check_equal(outputs.at(i++ % 3), xla::no_grad([&] { return model(data); }));
  };
  check();
  xla::eager_mode(false);
  check();
  CHECK(i == 6);
}

TEST_CASE("train_model: an optimizer for each batch, the same in every mode, from one graph") {
  const xla::eager_mode_guard eager;
  const auto [predictions, all] = train_model_main(make_loader(), train_model);
  test::check_pytorch("models/resnet18/pred0", predictions.at(0), 1e-4);
  test::check_pytorch("models/resnet18/pred1", predictions.at(1), 1e-3);
  // At this rate one relu whose input is nearly 0 decides about more than rounding does.
  test::check_pytorch("models/resnet18/pred2", predictions.at(2), 5e-2);

  auto dynamo_train_model = xla::compile(train_model);
  const auto graphs = test::count_of("UncachedCompile");
  CHECK(train_model_main(make_loader(), dynamo_train_model).all.difference(all) == "");
  CHECK(test::count_of("UncachedCompile") == graphs + 1);

  xla::eager_mode(false);
  CHECK(train_model_main(make_loader(), train_model).all.difference(all) == "");
}

namespace {

constexpr auto forward_of = [](auto& model, auto& data) { return model(data); };

/// Graphs that run in three steps of traced mode after the first.
std::int64_t graphs_of_three(auto&& step) {
  const auto graphs = [] {
    return test::count_of("CachedCompile") + test::count_of("UncachedCompile");
  };
  const xla::eager_mode_guard traced(false);
  test::batch batch(12);
  test::Mlp model;
  nn::CrossEntropyLoss loss_fn;
  optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  std::int64_t before = 0;
  for (int i = 0; i < 4; ++i) {
    step(model, batch.data, batch.target, loss_fn, optimizer);
    xla::sync(true);
    if (i == 0) before = graphs();
  }
  return graphs() - before;
}

}  // namespace

TEST_CASE("a compiled network and what is traced after it are two graphs, a whole step is one") {
  auto forward = xla::compile(forward_of);
  const auto network_alone = [&](auto& model, auto& data, auto& target, auto& loss_fn,
                                 auto& optimizer) {
    optimizer.zero_grad();
    auto loss = loss_fn(forward(model, data), target);
    loss.backward();
    optimizer.step();
  };
  CHECK(graphs_of_three(network_alone) == 6);
  CHECK(graphs_of_three(xla::compile(test::step_fn)) == 3);
  CHECK(graphs_of_three(test::step_fn) == 3);
}
