// SPDX-License-Identifier: Apache-2.0
// 5. Shapes and signatures: what is known when, and what a new size costs.
#include <iostream>

#include <xla/xla.hpp>

// The rank of every result follows from types. A size that is known only when the function runs is
// an xla::Size: it can be calculated with, and given to reshape or expand.
constexpr auto pool = [](xla::Tensor<float, 3>& images) {  // (batch, rows, columns)
  xla::Size batch = images.size(0);
  auto flat = xla::reshape(images, {batch, -1});
  xla::Tensor<float, 1> brightness = xla::mean(flat, {1});
  return brightness / batch;  // a size as a number in an expression
};

struct Model {
  xla::nn::Linear layer{3, 2};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return layer(x); }
  XLA_MODULE(layer)
};
constexpr auto apply = [](auto& model, auto& x) { return model(x); };

std::int64_t specialised() { return xla::counter_value("UncachedCompile").value_or(0); }

template <class F>
void try_it(F f) {
  try {
    f();
  } catch (const xla::error& e) {
    std::cout << e.what() << '\n';
  }
}

int main() {
  xla::eager_mode(true);
  auto compiled = xla::compile(pool, {.name = "pool", .max_signatures = 3});

  // The sizes of all arguments are a call's signature. The first call with a new one makes a plan,
  // well under a millisecond and without the C++ compiler; later calls find it.
  for (const int batch : {4, 4, 2, 4, 2}) {
    auto images = xla::ones<float>({batch, 5, 7});
    auto result = compiled(images);
    std::cout << "batch " << batch << ": " << result[0] << ", " << specialised() << " signatures\n";
  }
  //> batch 4: tensor(0.25, device='xla:0'), 1 signatures
  //> batch 4: tensor(0.25, device='xla:0'), 1 signatures
  //> batch 2: tensor(0.5, device='xla:0'), 2 signatures
  //> batch 4: tensor(0.25, device='xla:0'), 2 signatures
  //> batch 2: tensor(0.5, device='xla:0'), 2 signatures

  // More shapes than expected are an error, not a silent slow program.
  auto third = xla::ones<float>({1, 1, 1}), fourth = xla::ones<float>({1, 1, 2});
  compiled(third);
  try_it([&] { compiled(fourth); });
  //> Maximum number of different graphs allowed per function exceeded: 3 (pool)

  // What the default constructor of a model fixes is a fact of its type, compared at each call.
  Model model;
  auto predict = xla::compile(apply, {.name = "predict"});
  auto good = xla::ones<float>({9, 3}), bad = xla::ones<float>({9, 4});
  std::cout << predict(model, good).size(0) << " rows\n";
  //> 9 rows
  try_it([&] { predict(model, bad); });
  //> (9, 4)
  model.layer = xla::nn::Linear{3, 5};
  try_it([&] { predict(model, good); });
  //> argument 0.layer.weight is (5, 3), but its type's default constructor makes (2, 3)
}
