// SPDX-License-Identifier: Apache-2.0
// Models and tensors with static storage have elements, and train. (A compiler that may evaluate
// their constructors as constants would leave them without.)
#include "support/mlp.hpp"
#include "xla/xla.hpp"

using test::batch;
using test::Mlp;

namespace {

Mlp global_model;
xla::optim::SGD global_optimizer{global_model, {.lr = 0.1, .momentum = 0.9}};
xla::Tensor<float, 2> global_tensor = xla::ones<float>({2, 3});
xla::Tensor<float, 0> global_number = 2.5f;
const xla::Tensor<float, 0> constant_number{1.5f};

}  // namespace

inline Mlp inline_model;
thread_local Mlp thread_model;

namespace {

template <class Optimizer>
void check_trains(Mlp& model, Optimizer& optimizer) {
  const xla::eager_mode_guard eager;
  CHECK(model.fc1.weight.sizes() == test::sizes_t{33, 17});
  CHECK(sum(abs(model.fc1.weight)).item() > 0);
  CHECK(sum(abs(model.fc2.bias)).item() > 0);
  auto step = xla::compile(test::step_fn);
  xla::nn::CrossEntropyLoss loss_fn;
  batch b(32);
  const float first = step(model, b.data, b.target, loss_fn, optimizer).item();
  float last = first;
  for (int i = 0; i < 30; ++i) {
    last = test::step_fn(model, b.data, b.target, loss_fn, optimizer).item();
    last = step(model, b.data, b.target, loss_fn, optimizer).item();
  }
  CHECK(last < first / 2);
}

void check_trains(Mlp& model) {
  xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  check_trains(model, optimizer);
}

}  // namespace

TEST_CASE("a global model with a global optimizer trains") {
  check_trains(global_model, global_optimizer);
}

TEST_CASE("an inline variable trains") { check_trains(inline_model); }

TEST_CASE("a thread_local model trains") { check_trains(thread_model); }

TEST_CASE("a function's static model trains") {
  static Mlp model;
  static xla::optim::SGD optimizer{model, {.lr = 0.1, .momentum = 0.9}};
  check_trains(model, optimizer);
}

TEST_CASE("static tensors have their elements") {
  const xla::eager_mode_guard eager;
  static xla::Tensor<float, 1> local = xla::full<float>({3}, 4);
  static const auto made = xla::arange<std::int64_t>(3) * 2;
  test::check_equal(global_tensor, {2, 3}, std::vector<float>(6, 1.f));
  test::check_equal(local, {3}, std::vector<float>(3, 4.f));
  test::check_equal(made, {3}, std::vector<std::int64_t>{0, 2, 4});
  CHECK(global_number.item() == 2.5f);
  CHECK(constant_number.item() == 1.5f);
  test::check_equal(global_tensor * global_number, {2, 3}, std::vector<float>(6, 2.5f));
}
