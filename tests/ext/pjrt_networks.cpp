// SPDX-License-Identifier: Apache-2.0
// A step of training of whole networks on XLA, with the gradient of each parameter.
#include "support/backends.hpp"
#include "support/models.hpp"
#include "support/pjrt.hpp"
#include "support/small_bert.hpp"
#include "xla/models/bert.hpp"
#include "xla/models/resnet.hpp"

namespace models = xla::models;

namespace {

/// What a step leaves: its loss, then of each parameter the gradient and the new value.
using arrays = std::vector<std::vector<float>>;

template <class Model, class Step>
arrays train_on(const char* backend, Model model, Step step, auto... inputs) {
  const xla::eager_mode_guard eager;
  const test::on_backend plan("native");
  xla::optim::SGD optimizer{model, {.lr = 0.02, .momentum = 0.9}};
  auto compiled = xla::compile(step, {.backend = backend});
  arrays all{{compiled(model, inputs..., optimizer).item()}};
  xla::for_each_parameter(model, [&](auto& p) {
    all.push_back(p.grad().to_vector());
    all.push_back(p.to_vector());
  });
  return all;
}

double length(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

/// Each array's difference is less than a part of its length, or than rounding of the longest of
/// all where it is zero but for that, as the gradient of a bias before a norm.
void check_near(const arrays& got, const arrays& want, double part) {
  double longest = 0;
  for (const auto& x : want) longest = std::max(longest, length(x));
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    REQUIRE(got[i].size() == want[i].size());
    std::vector<float> apart(want[i].size());
    for (std::size_t k = 0; k < apart.size(); ++k) apart[k] = got[i][k] - want[i][k];
    INFO("array " << i << " of " << want.size() << ", of " << apart.size());
    CHECK(length(apart) <= part * length(want[i]) + 1e-6 * longest);
  }
  CHECK(std::abs(got[0][0] - want[0][0]) < 1e-5);
}

}  // namespace

TEST_CASE("ResNet-18 learns there what it learns here") {
  if (!test::plugin_is_there()) return;
  models::ResNet18<10> model;
  test::fill(model);
  const test::image_batch batch({4, 3, 64, 64}, 1);
  const auto on = [&](const char* backend) {
    return train_on(backend, model, test::image_step, batch.images, batch.labels);
  };
  // On another processor rounding may switch a ReLU: that is one part in hundreds of a gradient.
  check_near(on("pjrt:CPU"), on("native"), 0.05);
}

TEST_CASE("BERT learns there what it learns here") {
  if (!test::plugin_is_there()) return;
  models::BertForSequenceClassification<test::small_bert(), 3> model;
  test::fill(model);
  const auto ids = xla::tensor<std::int64_t>({{3, 17, 42, 5, 0}, {8, 49, 1, 30, 2}}),
             mask = xla::tensor<std::int64_t>({{1, 1, 1, 0, 0}, {1, 1, 1, 1, 1}});
  const auto step = [](auto& net, auto& words, auto& seen, auto& labels, auto& optimizer) {
    optimizer.zero_grad();
    auto loss = cross_entropy(net(words, seen), labels);
    loss.backward();
    optimizer.step();
    return loss;
  };
  const auto on = [&](const char* backend) {
    return train_on(backend, model, step, ids, mask, xla::tensor<std::int64_t>({2, 0}));
  };
  check_near(on("pjrt:CPU"), on("native"), 1e-4);
}
