// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "support/mlp.hpp"
#include "support/pytorch.hpp"
#include "xla/compile.hpp"
#include "xla/nn/state_dict.hpp"
#include "xla/op/derived/loss.hpp"
#include "xla/run/trace/step.hpp"

namespace test {

/// The float32 elements of a state, by fill() in tests/reference/models.py: the numbers of its
/// place.
inline void fill_array(const xla::NamedArray& array, std::uint64_t place,
                       std::span<std::uint8_t> bytes) {
  const std::size_t n = bytes.size() / sizeof(float);
  const bool weight = array.sizes.size() > 1;
  const bool around_zero = array.name.ends_with("bias") || array.name.ends_with("mean");
  const float inputs = weight ? static_cast<float>(n) / static_cast<float>(array.sizes[0]) : 0;
  const float scale = weight ? static_cast<float>(std::sqrt(6.0 / inputs) / 4) : 1.0f / 16;
  const float near = weight || around_zero ? 0 : 1;
  for (std::size_t i = 0; i < n; ++i) {
    const float value = near + scale * number<float>(place, i);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
}

/// Gives every state the numbers of fill() in tests/reference/models.py, as a file would.
template <class Model>
void fill(Model& model) {
  auto state = xla::state_dict(model);
  std::uint64_t place = 0;
  for (auto& array : state) {
    if (array.type != xla::dtype::int64) fill_array(array, place, array.bytes.edit());
    ++place;
  }
  xla::load_state_dict(model, state);
}

/// Sizes of a type's states, which its default constructor fixes, without memory for them.
template <class Model>
inline constexpr auto state_sizes = [] {
  struct sizes {
    int rank = 0;
    std::int64_t of[4] = {};
  };
  constexpr int count = [] {
    int n = 0;
    xla::visit_state_types<Model>([&](auto, const auto&) { ++n; });
    return n;
  }();
  std::array<sizes, count> all{};
  Model model;
  std::size_t at = 0;
  xla::visit_states(model, [&](auto& state, const auto&) {
    auto& s = all[at++];
    s.rank = state.shape().rank;
    for (int i = 0; i < s.rank; ++i) s.of[i] = state.shape()[i];
  });
  return all;
}();

/// A model's states without their elements.
template <class Model>
xla::StateDict empty_states() {
  xla::StateDict states;
  xla::visit_state_types<Model>([&](auto, const auto& path) {
    const auto& s = state_sizes<Model>[states.size()];
    states.push_back({path.str(), xla::dtype::float32, {s.of, s.of + s.rank}, {}});
  });
  return states;
}

/// Names and sizes as those that `pytorch` has.
inline std::vector<std::string> described(const xla::StateDict& states) {
  std::vector<std::string> out;
  for (const auto& array : states) {
    out.push_back(array.name);
    for (const auto size : array.sizes) out.back() += " " + std::to_string(size);
  }
  return out;
}

/// Names and sizes of a model's states against those that it has in Python, in their order.
template <class Model>
void check_states(const std::string& name) {
  INFO(name);
  const auto got = described(empty_states<Model>());
  const auto& want = pytorch::instance().states(name);
  REQUIRE(!want.empty());
  for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) REQUIRE(got[i] == want[i]);
  CHECK(got.size() == want.size());
}

/// Images of that size, and the classes that models.py trains them with.
struct image_batch {
  xla::Tensor<float, 4> images;
  xla::Tensor<std::int64_t, 1> labels;

  explicit image_batch(const xla::Size (&sizes)[4], std::uint64_t seed = 1000)
      : images(numbers<float>(sizes, seed) / 4) {
    const std::int64_t classes[4] = {3, 7, 0, 9};
    labels = xla::from_blob(classes, {sizes[0]});
  }
};

inline constexpr auto image_step = [](auto& model, auto& images, auto& labels, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = cross_entropy(model(images), labels);
  loss.backward();
  optimizer.step();
  return loss;
};

/// The parts of a training that models.py has recorded, too.
struct image_training {
  std::vector<float> losses, gradients, buffers;
  snapshot left;  ///< everything that the steps leave
};

template <class T, int R>
float length(const xla::Tensor<T, R>& x) {
  double sum = 0;
  for (const T v : x.to_vector()) sum += static_cast<double>(v) * static_cast<double>(v);
  return static_cast<float>(std::sqrt(sum));
}

/// Five steps, as train() in models.py.
template <class Model>
image_training train_images(Model& model, const image_batch& batch, double lr, auto& step) {
  image_training out;
  auto images = batch.images;
  auto labels = batch.labels;
  model.train();
  xla::optim::SGD optimizer{model, {.lr = lr, .momentum = 0.9}};
  for (int i = 0; i < 5; ++i) {
    out.losses.push_back(step(model, images, labels, optimizer).item());
    if (i == 0)
      xla::for_each_parameter(model, [&](auto& p) {
        if (const auto g = p.grad(); g.defined()) out.gradients.push_back(length(g));
      });
  }
  xla::for_each_buffer(model, [&](auto& b) {
    if constexpr (std::remove_cvref_t<decltype(b)>::rank > 0) out.buffers.push_back(length(b));
  });
  out.left = state_of(model, optimizer);
  return out;
}

inline void check_numbers(const std::string& name, const std::vector<float>& got,
                          double tolerance) {
  check_pytorch(name, xla::tensor(got), tolerance);
}

/// Compares logits with PyTorch's, for the weights of models.py, in eager mode.
template <class Model>
void check_logits(const std::string& name, Model model, const image_batch& batch,
                  double tolerance) {
  const xla::eager_mode_guard eager;
  fill(model);
  model.eval();
  const auto logits = xla::no_grad([&] { return model(batch.images); });
  check_pytorch("models/" + name + "/logits", logits, tolerance);
}

/// Compares evaluation and training of a copy with PyTorch's, in eager mode; returns what the
/// training leaves.
template <class Model>
image_training check_numbers_of(const std::string& name, Model model, const image_batch& batch,
                                double lr, double tolerance) {
  INFO(name);
  const xla::eager_mode_guard eager;
  check_logits(name, model, batch, tolerance);
  fill(model);
  const auto got = train_images(model, batch, lr, image_step);
  const std::string prefix = "models/" + name;
  check_numbers(prefix + "/losses", got.losses, 10 * tolerance);
  check_numbers(prefix + "/gradients", got.gradients, 10 * tolerance);
  if (!got.buffers.empty()) check_numbers(prefix + "/buffers", got.buffers, 10 * tolerance);
  return got;
}

/// The same, and all modes give the same bits.
template <class Model>
void check_model(const std::string& name, Model model, const image_batch& batch, double lr,
                 double tolerance) {
  INFO(name);
  const xla::eager_mode_guard eager;
  const auto want = check_numbers_of(name, model, batch, lr, tolerance);
  fill(model);
  model.eval();
  const auto logits = xla::no_grad([&] { return model(batch.images); });
  auto predict = xla::compile(model);
  check_equal(predict(batch.images), logits);

  const auto train = [&](auto& step) {
    Model copy = model;
    return train_images(copy, batch, lr, step);
  };
  auto compiled = xla::compile(image_step);
  CHECK(train(compiled).left.difference(want.left) == "");
  {
    INFO("on the interpreter");
    const on_backend op_by_op("interpreter");
    CHECK(train(compiled).left.difference(want.left) == "");
  }
  xla::eager_mode(false);
  check_equal(xla::no_grad([&] { return model(batch.images); }), logits);
  CHECK(train(image_step).left.difference(want.left) == "");
}

}  // namespace test
