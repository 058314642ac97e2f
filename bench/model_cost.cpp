// SPDX-License-Identifier: Apache-2.0
// What models.py builds: COST_INCLUDE nothing, COST_TRAINING the compiled training step of a model,
// COST_READING a program that reads, COST_START one that loads its weights from a file and reads.
// HEADER, MODEL and TASK are as in model.cpp.
#include <xla/xla.hpp>

#ifdef COST_INCLUDE
int main() {}
#else
#ifndef HEADER  // nobody has said which
#define HEADER <xla/models/alexnet.hpp>
#define MODEL AlexNet<>
#define TASK image_model
#endif
#include HEADER
#ifdef COST_START
#include <xla/ext/safetensors.hpp>
#endif

namespace {

using Model = xla::models::MODEL;
struct image_model {
  static auto data() { return xla::zeros<float>({1, 3, 224, 224}); }
};
struct text_model {
  static auto data() { return xla::zeros<std::int64_t>({1, 128}); }
};

#if defined(COST_TRAINING)
constexpr auto train = [](auto& model, auto& data, auto& labels, auto& loss_fn, auto& optimizer) {
  optimizer.zero_grad();
  auto loss = loss_fn(model(data), labels);
  loss.backward();
  optimizer.step();
  return loss;
};
template <class Data>
float use(Model& model, const Data& data) {
  auto labels = xla::zeros<std::int64_t>({data.size(0)});
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.001, .momentum = 0.9}};
  auto step = xla::compile(train);
  return step(model, data, labels, loss_fn, optimizer).item();
}
#else
template <class Data>
float use(Model& model, const Data& data) {
  model.eval();
  auto read = xla::compile(model);
  return xla::no_grad([&] { return read(data); }).to_vector().front();
}
#endif

}  // namespace

// <file>: loads it and reads; <file> write: makes it.
int main([[maybe_unused]] int argc, [[maybe_unused]] char** argv) {
  Model model;
#ifdef COST_START
  if (argc > 2) xla::ext::write_safetensors(argv[1], {xla::state_dict(model), {}});
  else xla::load_state_dict(model, xla::ext::read_safetensors(argv[1]).tensors);
#endif
  return use(model, TASK::data()) > 1e30f;
}
#endif
